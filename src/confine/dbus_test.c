/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for confine/dbus. */
#include "base/test.h"

#include <stdlib.h>

#include "base/limits.h"
#include "confine/dbus.h"

/* A signal as systemd sends it: JobRemoved(u 7, o "/j", s "a.scope", s "done"). The NUL of the literal is that of the last text. */
static const uint8_t good[] = "l\4\0\1\x21\0\0\0\x09\0\0\0\x4a\0\0\0"    /* 33 bytes of body, 74 of fields */
                              "\1\1o\0\4\0\0\0/org\0\0\0\0"              /* path */
                              "\2\1s\0\x09\0\0\0a.b.Manag\0\0\0\0\0\0\0" /* interface, with the gap after it */
                              "\3\1s\0\x0a\0\0\0JobRemoved\0\0\0\0\0\0"  /* member */
                              "\x08\1g\0\4uoss\0\0\0\0\0\0\0"            /* signature */
                              "\7\0\0\0\2\0\0\0/j\0\0\7\0\0\0a.scope\0\4\0\0\0done";

static void parse_reads_a_whole_signal(void **state)
{
    struct dbus_message m;
    size_t used = 0;
    (void)state;
    assert_int_equal(dbus_parse(good, sizeof(good), &m, &used), 1);
    assert_int_equal(used, sizeof(good));
    assert_int_equal(m.type, DBUS_SIGNAL);
    assert_int_equal(m.serial, 9);
    assert_string_equal(m.path, "/org");
    assert_string_equal(m.member, "JobRemoved");
    assert_string_equal(m.signature, "uoss");
    assert_string_equal(m.sender, "");
    struct dbus_reader r = dbus_body(&m);
    assert_int_equal(dbus_take_u32(&r), 7);
    assert_string_equal(dbus_take_text(&r), "/j");
    assert_string_equal(dbus_take_text(&r), "a.scope");
    assert_string_equal(dbus_take_text(&r), "done");
    assert_false(r.bad);
}

static void parse_wants_more_for_every_prefix(void **state)
{
    struct dbus_message m;
    size_t used = 7;
    (void)state;
    for (size_t n = 0; n < sizeof(good); n++) {
        uint8_t *copy = malloc(n ? n : 1); /* so that a look past the end is seen */
        memcpy(copy, good, n);
        assert_int_equal(dbus_parse(copy, n, &m, &used), 0);
        free(copy);
    }
    assert_int_equal(used, 7);
}

static void parse_takes_one_of_two(void **state)
{
    uint8_t two[2 * sizeof(good)];
    struct dbus_message m;
    size_t used;
    (void)state;
    memcpy(two, good, sizeof(good));
    memcpy(two + sizeof(good), good, sizeof(good));
    assert_int_equal(dbus_parse(two, sizeof(two), &m, &used), 1);
    assert_int_equal(used, sizeof(good));
}

/* good with one byte changed. */
static int changed(size_t at, uint8_t to)
{
    uint8_t copy[sizeof(good)];
    struct dbus_message m;
    size_t used;
    memcpy(copy, good, sizeof(good));
    copy[at] = to;
    return dbus_parse(copy, sizeof(copy), &m, &used);
}

static void parse_refuses_what_is_no_message(void **state)
{
    (void)state;
    assert_int_equal(changed(0, 'B'), -1);  /* the other byte order */
    assert_int_equal(changed(1, 0), -1);    /* no type */
    assert_int_equal(changed(1, 5), -1);    /* no type of ours */
    assert_int_equal(changed(3, 2), -1);    /* another protocol */
    assert_int_equal(changed(8, 0), -1);    /* no serial */
    assert_int_equal(changed(16, 0), -1);   /* field 0 */
    assert_int_equal(changed(18, 's'), -1); /* a path that is a text */
    assert_int_equal(changed(18, 'v'), -1); /* a value we do not read */
    assert_int_equal(changed(20, 5), -1);   /* a text without its NUL */
    assert_int_equal(changed(20, 3), -1);   /* a NUL too early */
    assert_int_equal(changed(23, 0xff), -1);
    assert_int_equal(changed(29, 1), -1); /* a gap that is not empty */
    assert_int_equal(changed(12, 73), -1);
}

static void parse_passes_over_a_field_it_does_not_know(void **state)
{
    (void)state;
    assert_int_equal(changed(16, 200), 1);
}

static void parse_refuses_lengths_beyond_the_limit_at_once(void **state)
{
    uint8_t head[16];
    struct dbus_message m;
    size_t used;
    (void)state;
    memcpy(head, good, sizeof(head));
    head[6] = 2; /* 128 KiB of body */
    assert_int_equal(dbus_parse(head, sizeof(head), &m, &used), -1);
    memcpy(head, good, sizeof(head));
    head[15] = 0xff;
    assert_int_equal(dbus_parse(head, sizeof(head), &m, &used), -1);
    assert_int_equal(dbus_parse((const uint8_t *)"HTTP", 4, &m, &used), -1);
}

static void reader_stays_bad(void **state)
{
    static const uint8_t body[] = {2, 0, 0, 0, 'a', 0, 0, 0, 1, 0, 0, 0};
    struct dbus_message m = {.body = body, .body_len = sizeof(body)};
    struct dbus_reader r = dbus_body(&m);
    (void)state;
    assert_string_equal(dbus_take_text(&r), "");
    assert_true(r.bad);
    assert_int_equal(dbus_take_u32(&r), 0);
}

static void writer_makes_what_the_parser_reads(void **state)
{
    static const struct dbus_call call = {5, "to.them", "/path", "a.b", "Do", "sau"};
    uint8_t mem[512];
    struct dbus_writer w;
    struct dbus_message m;
    size_t used;
    (void)state;
    dbus_start(&w, mem, sizeof(mem));
    dbus_begin(&w, &call);
    dbus_put_text(&w, "hello");
    size_t mark = dbus_open_array(&w, 4);
    dbus_put_u32(&w, 77);
    dbus_close_array(&w, mark, 4);
    dbus_end(&w);
    assert_false(w.full);
    assert_int_equal(dbus_parse(mem, w.len, &m, &used), 1);
    assert_int_equal(used, w.len);
    assert_int_equal(m.type, DBUS_CALL);
    assert_string_equal(m.destination, "to.them");
    assert_string_equal(m.interface, "a.b");
    struct dbus_reader r = dbus_body(&m);
    assert_string_equal(dbus_take_text(&r), "hello");
    assert_int_equal(dbus_take_u32(&r), 4);
    assert_int_equal(dbus_take_u32(&r), 77);
    assert_false(r.bad);
    assert_int_equal(r.at, r.end);
}

static void array_of_structs_does_not_count_its_first_gap(void **state)
{
    static const struct dbus_call call = {1, NULL, "/", "a.b", "Do", "a(sv)"};
    uint8_t mem[256];
    struct dbus_writer w;
    (void)state;
    dbus_start(&w, mem, sizeof(mem));
    dbus_begin(&w, &call);
    size_t mark = dbus_open_array(&w, 8);
    dbus_align(&w, 8);
    dbus_put_text(&w, "x");
    dbus_close_array(&w, mark, 8);
    dbus_end(&w);
    assert_int_equal(mem[w.body], 6); /* four of length, "x", NUL */
    assert_int_equal(w.len - w.body, 14);
}

static void writer_never_goes_past_its_memory(void **state)
{
    static const struct dbus_call call = {1, "to.them", "/path", "a.b", "Do", "s"};
    (void)state;
    for (size_t cap = 0; cap < 120; cap++) {
        uint8_t *mem = malloc(cap ? cap : 1);
        struct dbus_writer w;
        dbus_start(&w, mem, cap);
        dbus_begin(&w, &call);
        dbus_put_text(&w, "some text that is long enough for all of them");
        dbus_end(&w);
        assert_true(w.full);
        assert_true(w.len <= cap);
        free(mem);
    }
}

TESTS(cmocka_unit_test(parse_reads_a_whole_signal), cmocka_unit_test(parse_wants_more_for_every_prefix),
      cmocka_unit_test(parse_takes_one_of_two), cmocka_unit_test(parse_refuses_what_is_no_message),
      cmocka_unit_test(parse_passes_over_a_field_it_does_not_know), cmocka_unit_test(parse_refuses_lengths_beyond_the_limit_at_once),
      cmocka_unit_test(reader_stays_bad), cmocka_unit_test(writer_makes_what_the_parser_reads),
      cmocka_unit_test(array_of_structs_does_not_count_its_first_gap), cmocka_unit_test(writer_never_goes_past_its_memory))
