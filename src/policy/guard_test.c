/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/guard.h"

#include "base/test.h"

static char *items[] = {(char *)".git/hooks", (char *)".git/info/attributes", (char *)".envrc", (char *)"a/b/a/c"};
static const struct policy_strings list = {items, 4};

static enum guard_kin look(const char *dir, const char *name)
{
    struct guard_set s;
    guard_set_init(&s, &list);
    assert_int_equal(s.depth, 4);
    return guard_look(&s, dir, name);
}

static void a_single_name_is_guarded_at_every_depth(void **state)
{
    (void)state;
    assert_int_equal(look("", ".envrc"), GUARD_NAME);
    assert_int_equal(look("x/y/z", ".envrc"), GUARD_NAME);
    assert_int_equal(look("x", ".ENVRC"), GUARD_NAME);
    assert_int_equal(look("", ".envrc2"), GUARD_NO);
    assert_int_equal(look("", "envrc"), GUARD_NO);
    assert_int_equal(look("", ""), GUARD_NO);
}

static void a_name_of_several_needs_the_folders_before_it(void **state)
{
    (void)state;
    assert_int_equal(look(".git", "hooks"), GUARD_NAME);
    assert_int_equal(look("x/.git", "hooks"), GUARD_NAME);
    assert_int_equal(look("x/.Git", "HOOKS"), GUARD_NAME);
    assert_int_equal(look("", "hooks"), GUARD_NO);
    assert_int_equal(look("x.git", "hooks"), GUARD_NO);
    assert_int_equal(look(".git/x", "hooks"), GUARD_NO);
    assert_int_equal(look("it", "hooks"), GUARD_NO);
}

static void folders_that_lead_to_a_name_are_known(void **state)
{
    (void)state;
    assert_int_equal(look("", ".git"), GUARD_ABOVE);
    assert_int_equal(look("x/y", ".GIT"), GUARD_ABOVE);
    assert_int_equal(look(".git", "info"), GUARD_ABOVE);
    assert_int_equal(look("", "info"), GUARD_NO);
    assert_int_equal(look(".git/info", "attributes"), GUARD_NAME);
}

static void a_component_that_comes_twice_is_found_in_both_places(void **state)
{
    (void)state;
    assert_int_equal(look("", "a"), GUARD_ABOVE);
    assert_int_equal(look("a/b", "a"), GUARD_ABOVE);
    assert_int_equal(look("x/a/b/a", "c"), GUARD_NAME);
    assert_int_equal(look("b/a", "c"), GUARD_NO);
}

TESTS(cmocka_unit_test(a_single_name_is_guarded_at_every_depth), cmocka_unit_test(a_name_of_several_needs_the_folders_before_it),
      cmocka_unit_test(folders_that_lead_to_a_name_are_known), cmocka_unit_test(a_component_that_comes_twice_is_found_in_both_places))
