/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for base/record. */
#include "base/test.h"

#include "base/record.h"

static void record_round_trips_every_kind_of_field(void **state)
{
    (void)state;
    uint8_t mem[128];
    char text[8];
    uint64_t v;
    struct record_writer w;
    record_start(&w, mem, sizeof(mem));
    record_put_text(&w, 1, "hello");
    record_put_u64(&w, 2, 0x1122334455667788);
    record_put(&w, 3, NULL, 0);
    assert_false(w.full);
    struct record_reader r;
    struct record_field f;
    record_open(&r, mem, w.len);
    assert_int_equal(record_next(&r, &f), 1);
    assert_true(record_text(&f, text, sizeof(text)));
    assert_string_equal(text, "hello");
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
    record_put_text(&w, 1, "abc");
    record_put_text(&w, 2, "de");
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

static void record_text_refuses_nul_and_overlong(void **state)
{
    (void)state;
    char out[4];
    struct record_field nul = {.data = (const uint8_t *)"a\0b", .len = 3};
    struct record_field longer = {.data = (const uint8_t *)"abcd", .len = 4};
    assert_false(record_text(&nul, out, sizeof(out)));
    assert_false(record_text(&longer, out, sizeof(out)));
}

static void writer_that_is_full_stays_full(void **state)
{
    (void)state;
    uint8_t mem[10];
    struct record_writer w;
    record_start(&w, mem, sizeof(mem));
    record_put_text(&w, 1, "123456");
    assert_true(w.full);
    record_put(&w, 1, "", 0);
    assert_true(w.full);
    assert_int_equal(w.len, 0);
}

TESTS(cmocka_unit_test(record_round_trips_every_kind_of_field), cmocka_unit_test(record_refuses_every_prefix_that_cuts_a_field),
      cmocka_unit_test(record_text_refuses_nul_and_overlong), cmocka_unit_test(writer_that_is_full_stays_full))
