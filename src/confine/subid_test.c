/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for confine/subid. */
#include "base/test.h"

#include "confine/subid.h"

static void has_finds_a_range_by_name_or_number(void **state)
{
    (void)state;
    assert_true(subid_has("a:100000:65536\n", "a", 1000));
    assert_true(subid_has("x:1:1\n1000:100000:65536\n", "a", 1000));
    assert_true(subid_has("a:100000:65536", "a", 1000));
}

static void has_refuses_small_broken_and_foreign_ranges(void **state)
{
    (void)state;
    assert_false(subid_has("", "a", 1000));
    assert_false(subid_has("a:100000:65535\n", "a", 1000));
    assert_false(subid_has("ab:100000:65536\n", "a", 1000));
    assert_false(subid_has("a:100000\n", "a", 1000));
    assert_false(subid_has("a:-1:65536\n", "a", 1000));
}

static void free_begins_where_shadow_begins(void **state)
{
    const char *const texts[] = {"", "# comment\n\n"};
    uint32_t start = 0;
    (void)state;
    assert_true(subid_free(texts, 2, "root:x:0:0::/root:/bin/sh\n", &start));
    assert_int_equal(start, 100000);
}

static void free_goes_past_ranges_of_both_files_in_any_order(void **state)
{
    const char *const texts[] = {"b:165536:65536\na:100000:65536\n", "c:231072:10\n"};
    uint32_t start = 0;
    (void)state;
    assert_true(subid_free(texts, 2, "", &start));
    assert_int_equal(start, 231082);
}

static void free_goes_past_a_user_in_the_way(void **state)
{
    const char *const texts[] = {""};
    uint32_t start = 0;
    (void)state;
    assert_true(subid_free(texts, 1, "far:x:120000:120000::/:/bin/sh\n", &start));
    assert_int_equal(start, 120001);
}

static void free_refuses_what_it_cannot_read(void **state)
{
    const char *const texts[] = {"a:what:65536\n"}, *const full[] = {"a:0:1073741824\n"};
    uint32_t start = 7;
    (void)state;
    assert_false(subid_free(texts, 1, "", &start));
    assert_false(subid_free(full, 1, "", &start));
    assert_int_equal(start, 7);
}

TESTS(cmocka_unit_test(has_finds_a_range_by_name_or_number), cmocka_unit_test(has_refuses_small_broken_and_foreign_ranges),
      cmocka_unit_test(free_begins_where_shadow_begins), cmocka_unit_test(free_goes_past_ranges_of_both_files_in_any_order),
      cmocka_unit_test(free_goes_past_a_user_in_the_way), cmocka_unit_test(free_refuses_what_it_cannot_read))
