/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for base/path. */
#include "base/test.h"

#include "base/path.h"

static void normal_paths_have_no_detours(void **state)
{
    (void)state;
    assert_true(path_is_normal("/"));
    assert_true(path_is_normal("/a/b.c"));
    assert_true(path_is_normal("/..a"));
    static const char *const bad[] = {"", "a", "//", "/a/", "/a//b", "/./a", "/a/..", "/a/../b", "/a\nb", "/a\x7f"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(path_is_normal(bad[i]));
}

static void within_stops_at_component_boundaries(void **state)
{
    (void)state;
    assert_true(path_is_within("/a/b", "/a"));
    assert_true(path_is_within("/a", "/a"));
    assert_true(path_is_within("/x", "/"));
    assert_false(path_is_within("/ab", "/a"));
    assert_false(path_is_within("/", "/a"));
}

static void box_names_are_one_label(void **state)
{
    (void)state;
    assert_true(path_is_box_name("default"));
    assert_true(path_is_box_name("7-up"));
    static const char *const bad[] = {
        "", "-a", "A", "a b", "..", ".", "a/b", "a_b", "%2e%2e", "ä", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(path_is_box_name(bad[i]));
}

TESTS(cmocka_unit_test(normal_paths_have_no_detours), cmocka_unit_test(within_stops_at_component_boundaries),
      cmocka_unit_test(box_names_are_one_label))
