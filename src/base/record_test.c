/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for base/record. */
#include "base/test.h"

#include "base/record.h"

static void record_round_trips_every_kind_of_field(void **state)
{
    (void)state;
    uint8_t mem[128];
    uint64_t v;
    struct record_writer w;
    record_start(&w, mem, sizeof(mem));
    record_put(&w, 1, "hello", 5);
    record_put_u64(&w, 2, 0x1122334455667788);
    record_put(&w, 3, NULL, 0);
    assert_false(w.full);
    struct record_reader r;
    struct record_field f;
    record_open(&r, mem, w.len);
    assert_int_equal(record_next(&r, &f), 1);
    assert_int_equal(f.len, 5);
    assert_memory_equal(f.data, "hello", 5);
    assert_int_equal(record_next(&r, &f), 1);
    assert_true(record_u64(&f, &v));
    assert_int_equal(v, 0x1122334455667788);
    assert_int_equal(record_next(&r, &f), 1);
    assert_int_equal(f.len, 0);
    assert_int_equal(record_next(&r, &f), 0);
}

static void record_refuses_every_prefix_that_cuts_a_field(void **state)
{
    (void)state;
    uint8_t mem[64];
    struct record_writer w;
    record_start(&w, mem, sizeof(mem));
    record_put(&w, 1, "abc", 3);
    record_put(&w, 2, "de", 2);
    for (size_t n = 0; n < w.len; n++) {
        struct record_reader r;
        struct record_field f;
        int got;
        record_open(&r, mem, n);
        while ((got = record_next(&r, &f)) == 1)
            ;
        assert_int_equal(got, n == 0 || n == 8 ? 0 : -1);
    }
}

static void writer_that_is_full_stays_full(void **state)
{
    (void)state;
    uint8_t mem[10];
    struct record_writer w;
    record_start(&w, mem, sizeof(mem));
    record_put(&w, 1, "123456", 6);
    assert_true(w.full);
    record_put(&w, 1, "", 0);
    assert_true(w.full);
    assert_int_equal(w.len, 0);
}

TESTS(cmocka_unit_test(record_round_trips_every_kind_of_field), cmocka_unit_test(record_refuses_every_prefix_that_cuts_a_field),
      cmocka_unit_test(writer_that_is_full_stays_full))
