/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for net/hello. */
#include "base/test.h"

#include <stdbool.h>

#include "net/hello.h"

/* A message under construction: bytes, and where each length stands that is filled in at the end of its part. */
struct made {
    uint8_t at[80000];
    size_t len;
};

static struct made made, records;
static struct hello hello;
static size_t used;

static void put(struct made *m, const void *p, size_t n)
{
    assert_true(m->len + n <= sizeof(m->at));
    memcpy(m->at + m->len, p, n);
    m->len += n;
}

static void put_number(struct made *m, size_t bytes, size_t v)
{
    for (size_t i = bytes; i-- > 0;)
        put(m, &(uint8_t){(uint8_t)(v >> (8 * i))}, 1);
}

static size_t open_part(struct made *m, size_t bytes)
{
    put_number(m, bytes, 0);
    return m->len;
}

static void close_part(struct made *m, size_t at, size_t bytes)
{
    size_t n = m->len - at;
    for (size_t i = 0; i < bytes; i++)
        m->at[at - 1 - i] = (uint8_t)(n >> (8 * i));
}

static void put_extension(struct made *m, unsigned kind, const void *p, size_t n)
{
    put_number(m, 2, kind);
    put_number(m, 2, n);
    put(m, p, n);
}

#define EXTENSION(m, kind, bytes) put_extension(m, kind, bytes, sizeof(bytes) - 1)

static void put_name(struct made *m, const char *name, size_t n)
{
    put_number(m, 2, 0);
    put_number(m, 2, n + 5);
    put_number(m, 2, n + 3);
    put_number(m, 1, 0);
    put_number(m, 2, n);
    put(m, name, n);
}

/* Everything before the extensions; returns where they begin. */
static size_t begin_versioned(struct made *m, unsigned version)
{
    m->len = 0;
    put_number(m, 4, 0x01000000);
    put_number(m, 2, version);
    for (int i = 0; i < 32; i++)
        put_number(m, 1, 0xaa);
    put(m, "\x02sn\x00\x04\x13\x01\xc0\x2f\x01\x00", 11);
    return open_part(m, 2);
}

static size_t begin(struct made *m)
{
    return begin_versioned(m, 0x303);
}

static void end_message(struct made *m)
{
    close_part(m, 4, 3);
}

static void end(struct made *m, size_t extensions)
{
    close_part(m, extensions, 2);
    end_message(m);
}

/* The message in records of at most that many bytes. */
static void wrap(const struct made *m, size_t most)
{
    records.len = 0;
    for (size_t at = 0; at < m->len;) {
        size_t n = m->len - at < most ? m->len - at : most;
        put_number(&records, 3, 0x160301);
        put_number(&records, 2, n);
        put(&records, m->at + at, n);
        at += n;
    }
}

static int parse(void)
{
    return hello_parse(records.at, records.len, &hello, &used);
}

static int parse_wrapped(void)
{
    wrap(&made, 16384);
    return parse();
}

/* As a browser sends it, noise included. */
static void make_usual(void)
{
    size_t x = begin(&made);
    EXTENSION(&made, 0x1a1a, "");
    put_name(&made, "Example.COM.", 12);
    EXTENSION(&made, 23, "");
    EXTENSION(&made, 16, "\x00\x0c\x02h2\x08http/1.1");
    EXTENSION(&made, 43, "\x06\x9a\x9a\x03\x04\x03\x03");
    EXTENSION(&made, 42, "");
    EXTENSION(&made, 41, "\x00");
    end(&made, x);
}

static void a_message_in_records_of_every_size_and_every_prefix_of_it(void **state)
{
    (void)state;
    make_usual();
    for (size_t size = (made.len + HELLO_RECORDS_MAX - 1) / HELLO_RECORDS_MAX; size <= made.len; size++) {
        wrap(&made, size);
        for (size_t n = 0; n < records.len; n++)
            assert_int_equal(hello_parse(records.at, n, &hello, &used), 0);
        size_t whole = records.len;
        put(&records, "\x17\x03\x03more", 7); /* data that follows is nobody's business here */
        assert_int_equal(parse(), 1);
        assert_int_equal(used, whole);
        assert_int_equal(hello.name_len, 12);
        assert_string_equal(hello.name, "Example.COM.");
        assert_int_equal(hello.versions, HELLO_TLS_1_2 | HELLO_TLS_1_3);
        assert_true(hello_offers(&hello, "h2") && hello_offers(&hello, "http/1.1") && !hello_offers(&hello, "http/1.0"));
        assert_true(hello.has_early_data && hello.has_shared_key && !hello.has_ech);
    }
}

static void what_hides_a_name_is_told(void **state)
{
    (void)state;
    static const unsigned kinds[] = {0xfe0d, 0xfe0a, 0xffce, 0xfd00};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        size_t x = begin(&made);
        put_name(&made, "a", 1);
        EXTENSION(&made, kinds[i], "\x01");
        end(&made, x);
        assert_int_equal(parse_wrapped(), 1);
        assert_true(hello.has_ech);
    }
}

static void a_message_without_a_name_or_extensions_is_read(void **state)
{
    (void)state;
    size_t x = begin(&made);
    end(&made, x);
    assert_int_equal(parse_wrapped(), 1);
    assert_int_equal(hello.name_len, 0);
    made.len = x - 2;
    end_message(&made);
    assert_int_equal(parse_wrapped(), 1);
    assert_true(hello.name_len == 0 && hello.versions == HELLO_TLS_1_2);
}

static void versions_are_those_of_tls(void **state)
{
    (void)state;
    static const struct {
        unsigned version, bits;
    } rows[] = {{0x300, 0}, {0x301, HELLO_TLS_1_0}, {0x302, HELLO_TLS_1_1}, {0x303, HELLO_TLS_1_2}, {0x304, 0}, {0x200, 0}, {0x403, 0}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        end(&made, begin_versioned(&made, rows[i].version));
        assert_int_equal(parse_wrapped(), rows[i].bits ? 1 : -1);
        assert_int_equal(rows[i].bits ? hello.versions : (unsigned)hello.wrong, rows[i].bits ? rows[i].bits : HELLO_VERSION);
    }
}

static void extensions_that_two_could_read_differently_are_refused(void **state)
{
    (void)state;
#define ROW(wrong, kind, bytes)                                                                                                            \
    {                                                                                                                                      \
        wrong, kind, bytes, sizeof(bytes) - 1                                                                                              \
    }
    static const struct {
        enum hello_wrong wrong;
        unsigned kind;
        const char *bytes;
        size_t n;
    } rows[] = {
        ROW(HELLO_EXTENSION_SHAPE, 0, ""),
        ROW(HELLO_EXTENSION_SHAPE, 0, "\x00\x00"),
        ROW(HELLO_EXTENSION_SHAPE, 0,
            "\x00\x04\x00\x00\x02"
            "ab"),
        ROW(HELLO_EXTENSION_SHAPE, 0,
            "\x00\x04\x00\x00\x01"
            "ab"),
        ROW(HELLO_EXTENSION_SHAPE, 0,
            "\x00\x04\x00\x00\x02"
            "a"),
        ROW(HELLO_NAME_KIND, 0,
            "\x00\x04\x01\x00\x01"
            "a"),
        ROW(HELLO_NAME_COUNT, 0,
            "\x00\x08\x00\x00\x01"
            "a\x00\x00\x01"
            "b"),
        ROW(HELLO_NAME_COUNT, 0,
            "\x00\x05\x00\x00\x01"
            "a\x00"),
        ROW(HELLO_NAME_LENGTH, 0, "\x00\x03\x00\x00\x00"),
        ROW(HELLO_NAME_NUL, 0,
            "\x00\x06\x00\x00\x03"
            "a\0b"),
        ROW(HELLO_EXTENSION_SHAPE, 16, ""),
        ROW(HELLO_PROTOCOLS, 16, "\x00\x00"),
        ROW(HELLO_PROTOCOLS, 16, "\x00\x01\x00"),
        ROW(HELLO_EXTENSION_SHAPE, 16, "\x00\x03\x03h2"),
        ROW(HELLO_EXTENSION_SHAPE, 16, "\x00\x03\x02h2x"),
        ROW(HELLO_PROTOCOLS, 16,
            "\x00\x22\x21"
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
        ROW(HELLO_PROTOCOLS, 16,
            "\x00\x12\x01"
            "1\x01"
            "2\x01"
            "3\x01"
            "4\x01"
            "5\x01"
            "6\x01"
            "7\x01"
            "8\x01"
            "9"),
        ROW(HELLO_VERSIONS, 43, "\x00"),
        ROW(HELLO_VERSIONS, 43, "\x02\x1a\x1a"),
        ROW(HELLO_VERSIONS, 43, "\x02\x03\x00"),
        ROW(HELLO_EXTENSION_SHAPE, 43, "\x01\x03"),
        ROW(HELLO_EXTENSION_SHAPE, 43, "\x02\x03\x04\x03"),
        ROW(HELLO_EXTENSION_SHAPE, 42, "\x00"),
        ROW(HELLO_EXTENSION_SHAPE, 41, ""),
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        size_t x = begin(&made);
        put_extension(&made, rows[i].kind, rows[i].bytes, rows[i].n);
        end(&made, x);
        if (parse_wrapped() != -1 || hello.wrong != rows[i].wrong)
            fail_msg("row %zu: %s", i, hello_say(hello.wrong));
    }
#undef ROW
}

static void names_have_at_most_255_bytes(void **state)
{
    (void)state;
    char name[HELLO_NAME_MAX + 1];
    memset(name, 'a', sizeof(name));
    for (size_t n = HELLO_NAME_MAX; n <= HELLO_NAME_MAX + 1; n++) {
        size_t x = begin(&made);
        put_name(&made, name, n);
        end(&made, x);
        assert_int_equal(parse_wrapped(), n <= HELLO_NAME_MAX ? 1 : -1);
        assert_int_equal(hello.wrong, n <= HELLO_NAME_MAX ? HELLO_GOOD : HELLO_NAME_LENGTH);
    }
    assert_int_equal(hello.name_len, 0);
}

static void extensions_come_once_few_and_the_shared_key_last(void **state)
{
    (void)state;
    size_t x = begin(&made);
    put_name(&made, "a", 1);
    EXTENSION(&made, 23, "");
    put_name(&made, "b", 1);
    end(&made, x);
    assert_int_equal(parse_wrapped(), -1);
    assert_int_equal(hello.wrong, HELLO_EXTENSION_TWICE);
    for (unsigned count = HELLO_EXTENSIONS_MAX; count <= HELLO_EXTENSIONS_MAX + 1; count++) {
        x = begin(&made);
        for (unsigned i = 0; i < count; i++)
            EXTENSION(&made, 1000 + i, "");
        end(&made, x);
        assert_int_equal(parse_wrapped(), count <= HELLO_EXTENSIONS_MAX ? 1 : -1);
    }
    assert_int_equal(hello.wrong, HELLO_EXTENSIONS_MANY);
    x = begin(&made);
    EXTENSION(&made, 41, "\x00");
    put_name(&made, "a", 1);
    end(&made, x);
    assert_int_equal(parse_wrapped(), -1);
    assert_int_equal(hello.wrong, HELLO_KEY_PLACE);
}

static void bytes_behind_the_extensions_are_refused(void **state)
{
    (void)state;
    size_t x = begin(&made);
    put_name(&made, "a", 1);
    close_part(&made, x, 2);
    put_number(&made, 1, 0);
    end_message(&made);
    assert_int_equal(parse_wrapped(), -1);
    assert_int_equal(hello.wrong, HELLO_LENGTHS);
}

/* One byte of the usual message is another. */
static void lengths_that_lie_are_refused(void **state)
{
    (void)state;
    static const struct {
        size_t at;
        uint8_t byte;
        enum hello_wrong wrong;
    } rows[] = {
        {4 + 34, 33, HELLO_SESSION},          /* the session */
        {4 + 34, 255, HELLO_LENGTHS},         /* past the end */
        {4 + 34 + 4, 3, HELLO_CIPHERS},       /* odd */
        {4 + 34 + 4, 0, HELLO_CIPHERS},       /* none */
        {4 + 34 + 3, 255, HELLO_LENGTHS},     /* past the end */
        {4 + 34 + 9, 0, HELLO_COMPRESSION},   /* none */
        {4 + 34 + 10, 1, HELLO_COMPRESSION},  /* only another */
        {4 + 34 + 12, 1, HELLO_LENGTHS},      /* bytes behind the extensions */
        {4 + 34 + 11, 200, HELLO_LENGTHS},    /* extensions past the end */
        {4 + 34 + 13 + 3, 200, HELLO_LENGTHS} /* one extension past the end */
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        make_usual();
        made.at[rows[i].at] = rows[i].byte;
        if (parse_wrapped() != -1 || hello.wrong != rows[i].wrong)
            fail_msg("row %zu: %s", i, hello_say(hello.wrong));
    }
}

static void records_that_are_none_are_refused_at_their_first_wrong_byte(void **state)
{
    (void)state;
#define ROW(wrong, bytes)                                                                                                                  \
    {                                                                                                                                      \
        wrong, bytes, sizeof(bytes) - 1                                                                                                    \
    }
    static const struct {
        enum hello_wrong wrong;
        const char *bytes;
        size_t n;
    } rows[] = {
        ROW(HELLO_SSL2, "\x80"),
        ROW(HELLO_NOT_TLS, "G"),
        ROW(HELLO_NOT_TLS, "\x15"),
        ROW(HELLO_NOT_TLS, "\x16\x02"),
        ROW(HELLO_RECORD_VERSION, "\x16\x03\x00"),
        ROW(HELLO_RECORD_VERSION, "\x16\x03\x04"),
        ROW(HELLO_RECORD_EMPTY, "\x16\x03\x01\x00\x00"),
        ROW(HELLO_RECORD_LONG, "\x16\x03\x01\x40\x01"),
        ROW(HELLO_MESSAGE_OTHER, "\x16\x03\x01\x01\x00\x02"),
        ROW(HELLO_MESSAGE_LONG, "\x16\x03\x01\x01\x00\x01\x00\x40\x01"),
        ROW(HELLO_MESSAGE_TAIL, "\x16\x03\x01\x01\x00\x01\x00\x00\xfb"),
        ROW(HELLO_RECORD_EMPTY, "\x16\x03\x01\x00\x01\x01\x16\x03\x01\x00\x00"),
        ROW(HELLO_RECORD_OTHER, "\x16\x03\x01\x00\x01\x01\x14"),
        ROW(HELLO_RECORD_VERSION, "\x16\x03\x01\x00\x01\x01\x16\x02"),
        ROW(HELLO_MESSAGE_LONG, "\x16\x03\x01\x00\x01\x01\x16\x03\x01\x00\x03\xff\xff\xff"),
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (size_t n = 0; n <= rows[i].n; n++)
            if (hello_parse((const uint8_t *)rows[i].bytes, n, &hello, &used) != (n < rows[i].n ? 0 : -1) ||
                (n == rows[i].n && hello.wrong != rows[i].wrong))
                fail_msg("row %zu with %zu bytes: %s", i, n, hello_say(hello.wrong));
#undef ROW
}

static void too_many_records_and_too_long_a_message_are_refused(void **state)
{
    (void)state;
    make_usual();
    wrap(&made, 1);
    assert_int_equal(parse(), -1);
    assert_int_equal(hello.wrong, HELLO_RECORDS_MANY);
    static const char padding[HELLO_MESSAGE_MAX];
    size_t x = begin(&made), spare = HELLO_MESSAGE_MAX + 4 - made.len - 4;
    for (size_t more = 0; more <= 1; more++) {
        made.len = x;
        put_extension(&made, 21, padding, spare + more);
        end(&made, x);
        wrap(&made, 1000);
        assert_true(more || records.len <= HELLO_BYTES_MAX);
        assert_int_equal(parse(), more ? -1 : 1);
    }
    assert_int_equal(hello.wrong, HELLO_MESSAGE_LONG);
}

static void a_second_message_may_follow_a_record_of_no_meaning(void **state)
{
    (void)state;
    static uint8_t all[2000] = {0x14, 3, 3, 0, 1, 1};
    make_usual();
    wrap(&made, 16384);
    memcpy(all + 6, records.at, records.len);
    for (size_t n = 0; n < 6 + records.len; n++)
        assert_int_equal(hello_parse_again(all, n, &hello, &used), 0);
    assert_int_equal(hello_parse_again(all, 6 + records.len, &hello, &used), 1);
    assert_int_equal(used, 6 + records.len);
    assert_int_equal(hello_parse_again(all + 6, records.len, &hello, &used), 1);
    assert_int_equal(used, records.len);
    assert_int_equal(hello_parse(all, 6 + records.len, &hello, &used), -1);
    all[5] = 2;
    assert_int_equal(hello_parse_again(all, 6 + records.len, &hello, &used), -1);
}

static void a_server_that_asks_again_is_told_from_others(void **state)
{
    (void)state;
    static uint8_t answer[] = {0x16, 3,    3,    0,    88,   2,    0,    0,    84,   3,    3,    0xcf, 0x21, 0xad, 0x74,
                               0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2, 0xa2, 0x11,
                               0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c, 0x20};
    for (size_t n = 0; n < 43; n++)
        assert_int_equal(hello_asks_again(answer, n), -1);
    assert_int_equal(hello_asks_again(answer, 43), 1);
    assert_int_equal(hello_asks_again(answer, 44), 1);
    answer[42] ^= 1;
    assert_int_equal(hello_asks_again(answer, 43), 0);
    assert_int_equal(hello_asks_again((const uint8_t *)"\x15", 1), 0);
}

TESTS(cmocka_unit_test(a_message_in_records_of_every_size_and_every_prefix_of_it), cmocka_unit_test(what_hides_a_name_is_told),
      cmocka_unit_test(a_message_without_a_name_or_extensions_is_read), cmocka_unit_test(versions_are_those_of_tls),
      cmocka_unit_test(extensions_that_two_could_read_differently_are_refused), cmocka_unit_test(names_have_at_most_255_bytes),
      cmocka_unit_test(extensions_come_once_few_and_the_shared_key_last), cmocka_unit_test(lengths_that_lie_are_refused),
      cmocka_unit_test(bytes_behind_the_extensions_are_refused),
      cmocka_unit_test(records_that_are_none_are_refused_at_their_first_wrong_byte),
      cmocka_unit_test(too_many_records_and_too_long_a_message_are_refused),
      cmocka_unit_test(a_second_message_may_follow_a_record_of_no_meaning), cmocka_unit_test(a_server_that_asks_again_is_told_from_others))
