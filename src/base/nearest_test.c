/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for base/nearest. */
#include "base/test.h"

#include "base/nearest.h"

static void distance_counts_edits_and_swaps(void **state)
{
    (void)state;
    assert_int_equal(nearest_distance("memory", "memory"), 0);
    assert_int_equal(nearest_distance("memroy", "memory"), 1);
    assert_int_equal(nearest_distance("exce", "exec"), 1);
    assert_int_equal(nearest_distance("", "abc"), 3);
    assert_int_equal(nearest_distance("kitten", "sitting"), 3);
}

static void nearest_says_nothing_when_nothing_is_near(void **state)
{
    (void)state;
    struct nearest n;
    nearest_init(&n, "exce");
    nearest_offer(&n, "inspect");
    assert_null(n.best);
    nearest_offer(&n, "exec");
    nearest_offer(&n, "wait");
    assert_string_equal(n.best, "exec");
}

TESTS(cmocka_unit_test(distance_counts_edits_and_swaps), cmocka_unit_test(nearest_says_nothing_when_nothing_is_near))
