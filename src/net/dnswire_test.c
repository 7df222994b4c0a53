/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for net/dnswire: names above all, with pointers that lead everywhere. */
#include "base/test.h"

#include "net/dnswire.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static struct dns_name name;

/* Reads a name at a place of the message; returns where the cursor stands then, or 0 if there is none. */
static size_t read_at(const uint8_t *p, size_t n, size_t at, bool pointers)
{
    struct dns_cursor c = {.message = p, .len = n, .at = at};
    dnswire_name(&c, pointers, &name);
    return c.bad ? 0 : c.at;
}

/* Twelve bytes of a head, then at 12 "a.bc", at 18 "x" before a pointer to 12, at 22 a pointer to 18. */
static const uint8_t message[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 'a', 2, 'b', 'c', 0, 1, 'x', 0xc0, 12, 0xc0, 18};

static void names_are_read_through_pointers(void **state)
{
    (void)state;
    assert_int_equal(read_at(message, sizeof(message), 12, false), 18);
    assert_memory_equal(name.byte, "\1a\2bc", 6);
    assert_int_equal(read_at(message, sizeof(message), 18, true), 22);
    assert_int_equal(name.len, 8);
    assert_memory_equal(name.byte, "\1x\1a\2bc", 8);
    assert_int_equal(read_at(message, sizeof(message), 22, true), 24);
    assert_memory_equal(name.byte, "\1x\1a\2bc", 8);
    assert_int_equal(read_at(message, sizeof(message), 18, false), 0);
    for (size_t n = 12; n < 18; n++)
        assert_int_equal(read_at(message, n, 12, true), 0);
    assert_int_equal(read_at(message, 23, 22, true), 0);
}

/* Every pointer at one place: only those that lead back, behind the head, to a name are taken. */
static void pointers_lead_back_and_not_into_the_head(void **state)
{
    (void)state;
    uint8_t m[sizeof(message)];
    memcpy(m, message, sizeof(m));
    for (unsigned to = 0; to < 0x4000; to++) {
        m[22] = (uint8_t)(0xc0 | to >> 8);
        m[23] = (uint8_t)to;
        bool names = to == 12 || to == 14 || to == 17 || to == 18 || to == 20;
        assert_int_equal(read_at(m, sizeof(m), 22, true), names ? 24 : 0);
    }
    /* Labels before a pointer count: it must not lead to them. */
    static const uint8_t loop[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 'a', 0xc0, 12};
    assert_int_equal(read_at(loop, sizeof(loop), 12, true), 0);
}

static void lengths_of_labels_and_names_have_an_end(void **state)
{
    (void)state;
    uint8_t m[400] = {0};
    for (unsigned first = 0; first < 256; first++) {
        memset(m, 'a', sizeof(m));
        m[12] = (uint8_t)first;
        m[12 + 1 + first] = 0;
        assert_int_equal(read_at(m, sizeof(m), 12, false), first <= 63 ? (first ? 14 + first : 13) : 0);
    }
    /* Labels of one byte: 127 of them and the root are 255 bytes. */
    for (size_t labels = 120; labels < 140; labels++) {
        for (size_t i = 0; i < labels; i++)
            memcpy(m + 12 + 2 * i, "\1a", 2);
        m[12 + 2 * labels] = 0;
        assert_int_equal(read_at(m, sizeof(m), 12, false) > 0, labels <= 127);
        memcpy(m + 12 + 2 * labels, "\2ab", 4); /* and one of two bytes: 126 would make 256 */
        assert_int_equal(read_at(m, sizeof(m), 12, false) > 0, labels <= 125);
    }
}

/* Pointers to pointers are cheap to send and dear to follow. */
static void jumps_are_counted(void **state)
{
    (void)state;
    uint8_t m[1024] = {0};
    for (size_t i = 1; i < 400; i++) {
        size_t at = 12 + 2 * i, to = i == 1 ? 12 : at - 2;
        m[at] = (uint8_t)(0xc0 | to >> 8);
        m[at + 1] = (uint8_t)to;
        assert_int_equal(read_at(m, sizeof(m), at, true) > 0, i <= 127);
    }
}

static void hosts_are_meant_by_names_without_tricks(void **state)
{
    (void)state;
    static const struct {
        const char *wire;
        size_t len;
        const char *host; /* NULL: no host */
    } rows[] = {
        {"\6GitHub\3com", 12, "github.com"},
        {"\11localhost", 11, "localhost"},
        {"", 1, NULL},
        {"\12github.com", 12, NULL},
        {"\4a.b.\3com", 10, NULL},
        {"\4a\0b!\3com", 10, NULL},
        {"\3"
         "127\1"
         "0\1"
         "0\1"
         "1",
         11, NULL},
        {"\5_http\3com", 11, NULL},
        {"\3a b\3com", 9, NULL},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct hostname h = {0};
        struct dns_name back = {0};
        name.len = rows[i].len;
        memcpy(name.byte, rows[i].wire, rows[i].len);
        assert_int_equal(dnswire_host(&name, &h) == HOSTNAME_GOOD, rows[i].host != NULL);
        if (!rows[i].host)
            continue;
        assert_string_equal(h.text, rows[i].host);
        dnswire_from_host(&h, &back);
        assert_true(dnswire_same_name(&back, &name));
    }
}

static void names_are_the_same_in_either_case(void **state)
{
    (void)state;
    static const struct dns_name a = {7, "\1a\3cOm"}, b = {7, "\1A\3Com"}, c = {7, "\1a\3con"}, d = {6, "\1a\2co"};
    assert_true(dnswire_same_name(&a, &b));
    assert_false(dnswire_same_name(&a, &c));
    assert_false(dnswire_same_name(&a, &d));
    /* '@' and '`', '[' and '{' differ as letters of either case do, and are none. */
    static const struct dns_name at = {3, "\1@"}, tick = {3, "\1`"}, open = {3, "\1["}, brace = {3, "\1{"};
    assert_false(dnswire_same_name(&at, &tick));
    assert_false(dnswire_same_name(&open, &brace));
}

static void what_does_not_fit_is_not_written(void **state)
{
    (void)state;
    uint8_t m[16] = {0};
    struct dns_writer w = {.message = m, .cap = 5};
    dnswire_put_u32(&w, 0x01020304);
    assert_false(w.full);
    dnswire_put_u16(&w, 0x0506);
    dnswire_put(&w, "x", 1);
    assert_true(w.full && w.at == 4 && m[4] == 0);
    assert_memory_equal(m, "\1\2\3\4", 4);
}

TESTS(cmocka_unit_test(names_are_read_through_pointers), cmocka_unit_test(pointers_lead_back_and_not_into_the_head),
      cmocka_unit_test(lengths_of_labels_and_names_have_an_end), cmocka_unit_test(jumps_are_counted),
      cmocka_unit_test(hosts_are_meant_by_names_without_tricks), cmocka_unit_test(names_are_the_same_in_either_case),
      cmocka_unit_test(what_does_not_fit_is_not_written))
