/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for init/memory. */
#include "base/test.h"

#include <stdbool.h>

#include "init/memory.h"

#define CASE(f) cmocka_unit_test(f)

static void there_is_no_heap_before_it_is_opened(void **state)
{
    (void)state;
    struct pale_err e;
    assert_null(memory_alloc(1));
    assert_null(memory_change(NULL, 1));
    assert_int_equal(memory_open_heap(&e), 0);
    assert_non_null(memory_alloc(1));
}

static void pieces_do_not_touch_each_other(void **state)
{
    (void)state;
    enum { PIECES = 300 };
    unsigned char *p[PIECES];
    size_t n[PIECES];
    for (size_t round = 0; round < 20; round++) {
        for (size_t i = 0; i < PIECES; i++) {
            n[i] = (i * 37 + round * 101) % 3000;
            p[i] = memory_alloc(n[i]);
            assert_non_null(p[i]);
            assert_int_equal((uintptr_t)p[i] % 16, 0);
            memset(p[i], (int)i, n[i]);
        }
        for (size_t i = 0; i < PIECES; i++) {
            size_t more = n[i] * 2 + 1;
            p[i] = i % 3 ? p[i] : memory_change(p[i], more);
            for (size_t k = 0; k < n[i]; k++)
                assert_int_equal(p[i][k], i & 255);
        }
        for (size_t i = 0; i < PIECES; i++)
            memory_free(p[i]);
    }
}

static void the_heap_ends(void **state)
{
    (void)state;
    size_t got = 0;
    assert_null(memory_alloc(MEMORY_HEAP));
    assert_null(memory_alloc(SIZE_MAX));
    while (memory_alloc(1 << 20))
        got++;
    assert_in_range(got, 1, MEMORY_HEAP >> 20);
    memory_free(NULL);
}

TESTS(CASE(there_is_no_heap_before_it_is_opened), CASE(pieces_do_not_touch_each_other), CASE(the_heap_ends))
