/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for net/pieces. */
#include "base/test.h"

#include "net/pieces.h"

static void bytes_are_taken_once_and_given_within_the_room(void **state)
{
    (void)state;
    uint8_t out[6] = "......", part[4];
    struct pieces p = {.in = (const uint8_t *)"abcdefgh", .in_len = 8, .out = out, .room = 5};
    size_t n, filled = 0;
    assert_ptr_equal(pieces_take(&p, 2, &n), p.in);
    assert_int_equal(n, 2);
    assert_int_equal(pieces_pass(&p, 1), 1);
    assert_true(pieces_collect(&p, part, &filled, 4));
    assert_memory_equal(part, "defg", 4);
    assert_false(pieces_collect(&p, part, &filled, 4));
    assert_int_equal(filled, 1);
    assert_int_equal(pieces_give(&p, NULL, 2), 2);
    assert_int_equal(pieces_give(&p, "xyz", 3), 2);
    assert_int_equal(pieces_give(&p, "xyz", 3), 0);
    assert_int_equal(pieces_pass(&p, 9), 0);
    assert_memory_equal(out, "c\0\0xy.", 6);
    assert_true(p.used == 8 && p.made == 5);
}

static void nothing_is_taken_from_nothing(void **state)
{
    (void)state;
    struct pieces p = {.last = true};
    size_t n;
    (void)pieces_take(&p, UINT64_MAX, &n);
    assert_int_equal(n, 0);
    assert_int_equal(pieces_pass(&p, UINT64_MAX), 0);
    assert_int_equal(pieces_give(&p, NULL, UINT64_MAX), 0);
}

TESTS(cmocka_unit_test(bytes_are_taken_once_and_given_within_the_room), cmocka_unit_test(nothing_is_taken_from_nothing))
