/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for net/dnslookup: servers that tell the truth, and others. */
#include "base/test.h"

#include <stdlib.h>

#include "net/dnslookup.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static struct dns_question q;
static struct dns_found f;
static struct pale_err e;
static uint8_t bytes[65536];
static struct dns_writer w;

static void ask(const char *name, enum dns_type type)
{
    struct hostname h;
    assert_int_equal(hostname_canon(name, strlen(name), true, &h), HOSTNAME_GOOD);
    dnslookup_question(0x4321, type, &h, &q);
}

/* Begins an answer to q. */
static void begin(unsigned flags, unsigned answers, unsigned authorities, unsigned additionals)
{
    const struct dns_head h = {q.id, (uint16_t)flags, 1, (uint16_t)answers, (uint16_t)authorities, (uint16_t)additionals};
    w = (struct dns_writer){.message = bytes, .cap = sizeof(bytes)};
    dnswire_put_head(&w, &h);
    dnswire_put(&w, q.name.byte, q.name.len);
    dnswire_put_u16(&w, q.type);
    dnswire_put_u16(&w, DNS_IN);
}

static void put(const char *owner, size_t owner_len, unsigned type, uint32_t ttl, const void *data, size_t len)
{
    dnswire_put(&w, owner, owner_len);
    dnswire_put_u16(&w, type);
    dnswire_put_u16(&w, DNS_IN);
    dnswire_put_u32(&w, ttl);
    dnswire_put_u16(&w, (unsigned)len);
    dnswire_put(&w, data, len);
}

#define NAME(s) (s), sizeof(s) /* with the NUL, which is the root */
#define ASKED "\xc0\x0c", 2
#define EXTENSION "\0\0\x29\4\xd0\0\0\0\0\0\0", 11

static int parse(void)
{
    return dnslookup_parse(&q, bytes, w.at, &f, &e);
}

/* Exactly as long as it is, so that a step too far is seen. */
static int parse_exact(size_t n)
{
    uint8_t *copy = n ? malloc(n) : NULL;
    if (n)
        memcpy(copy, bytes, n);
    int r = dnslookup_parse(&q, copy, n, &f, &e);
    free(copy);
    return r;
}

static void questions_are_written(void **state)
{
    (void)state;
    uint8_t m[DNS_LOOKUP_BYTES];
    static const uint8_t want[] = "\x43\x21\1\0\0\1\0\0\0\0\0\1\6github\3com\0\0\x1c\0\1\0\0\x29\4\xd0\0\0\0\0\0\0";
    struct dns_query read;
    ask("github.com", DNS_AAAA);
    assert_int_equal(dnslookup_write(&q, false, m), sizeof(want) - 1);
    assert_memory_equal(m, want, sizeof(want) - 1);
    assert_int_equal(dnsmsg_parse(m, sizeof(want) - 1, &read), 0);
    assert_int_equal(dnslookup_write(&q, true, m), sizeof(want) + 1);
    assert_true(m[0] == 0 && m[1] == sizeof(want) - 1);
    assert_memory_equal(m + 2, want, sizeof(want) - 1);
}

static void addresses_are_found_at_the_end_of_a_chain(void **state)
{
    (void)state;
    ask("a.example", DNS_A);
    begin(0x8180, 5, 1, 2);
    /* Out of order, with something that is nobody's business between. */
    put(NAME("\1c\7example"), DNS_A, 300, "\1\2\3\4", 4);
    put(ASKED, DNS_CNAME, 100, NAME("\1B\7eXample"));
    put(NAME("\5other\7example"), DNS_A, 1, "\x7f\0\0\1", 4);
    put(NAME("\1b\7example"), DNS_CNAME, 200, NAME("\1c\7example"));
    put(NAME("\1C\7example"), DNS_A, 50, "\1\2\3\5", 4);
    put(ASKED, 2, 1, "\0", 1);
    put(NAME("\1c\7example"), DNS_A, 1, "\x7f\0\0\2", 4);
    dnswire_put(&w, EXTENSION);
    assert_int_equal(parse(), 1);
    assert_true(f.result == DNS_NOERROR && !f.truncated && f.count == 2 && f.ttl == 50);
    assert_memory_equal(f.address[0].byte, "\1\2\3\4", 4);
    assert_memory_equal(f.address[1].byte, "\1\2\3\5", 4);
    for (size_t n = 0; n < w.at; n++) /* no prefix is an answer */
        assert_true(parse_exact(n) <= 0);
    assert_int_equal(parse_exact(w.at), 1);
    bytes[w.at++] = 0;
    assert_int_equal(parse(), -PALE_BAD_INPUT);
    assert_non_null(strstr(e.text, "goes on"));
}

static void what_does_not_answer_the_question_may_be_followed_by_what_does(void **state)
{
    (void)state;
    ask("github.com", DNS_A);
    begin(0x8180, 1, 0, 0);
    put(ASKED, DNS_A, 60, "\1\2\3\4", 4);
    assert_int_equal(parse(), 1);
    static const struct {
        size_t at;
        uint8_t flip;
    } rows[] = {{0, 1}, {1, 0x80}, {2, 0x80}, {2, 0x08}, {5, 2}, {5, 1}, {13, 0x20}, {13, 1}, {25, 2}, {27, 2}, {12, 1}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        bytes[rows[i].at] ^= rows[i].flip;
        assert_int_equal(parse(), 0);
        bytes[rows[i].at] ^= rows[i].flip;
    }
}

static void results_are_told(void **state)
{
    (void)state;
    ask("github.com", DNS_A);
    begin(0x8183, 0, 0, 0);
    assert_int_equal(parse(), 1);
    assert_true(f.result == DNS_NXDOMAIN && f.count == 0 && f.ttl == 0);
    begin(0x8180, 0, 0, 0);
    assert_int_equal(parse(), 1);
    assert_true(f.result == DNS_NOERROR && f.count == 0 && f.ttl == 0);
    begin(0x8180, 0, 0, 1);
    dnswire_put(&w, "\0\0\x29\4\xd0\1\0\0\0\0\0", 11); /* the upper bits: a version that is not spoken */
    assert_int_equal(parse(), 1);
    assert_int_equal(f.result, DNS_BADVERS);
    /* A result that is none comes without addresses, whatever else is in it. */
    begin(0x8182, 1, 0, 0);
    put(ASKED, DNS_A, 60, "\1\2\3\4", 4);
    assert_int_equal(parse(), 1);
    assert_true(f.result == DNS_SERVFAIL && f.count == 0);
    /* So does an answer that was cut. */
    begin(0x8380, 3, 0, 0);
    put(ASKED, DNS_A, 60, "\1\2\3\4", 4);
    assert_int_equal(parse(), 1);
    assert_true(f.truncated && f.count == 0);
}

static void other_families_and_classes_are_read_over(void **state)
{
    (void)state;
    ask("github.com", DNS_AAAA);
    begin(0x8180, 3, 0, 0);
    put(ASKED, DNS_A, 60, "\1\2\3\4", 4);
    put(ASKED, DNS_AAAA, 0x80000000u, "\x20\1\0\0\0\0\0\0\0\0\0\0\0\0\0\1", 16);
    put(ASKED, DNS_AAAA, 7, "\x20\1\0\0\0\0\0\0\0\0\0\0\0\0\0\2", 16);
    bytes[w.at - 23] = 3; /* class CH */
    assert_int_equal(parse(), 1);
    assert_true(f.count == 1 && f.address[0].family == ADDRESS_V6 && f.ttl == 0);
}

/* A chain of n links: n aliases, then an address. */
static int chain(unsigned n, bool round)
{
    ask("a0.example", DNS_A);
    begin(0x8180, n + 1, 0, 0);
    char owner[13] = "\2a0\7example", to[13] = "\2a0\7example";
    for (unsigned i = 0; i < n; i++) {
        owner[2] = (char)('0' + i);
        to[2] = (char)(round && i + 1 == n ? '0' : '0' + i + 1);
        put(owner, 12, DNS_CNAME, 60, to, 12);
    }
    put(to, 12, DNS_A, 60, "\1\2\3\4", 4);
    return parse();
}

static void chains_end(void **state)
{
    (void)state;
    for (unsigned n = 0; n < 20; n++) {
        assert_int_equal(chain(n, false), n <= DNS_ALIASES_MAX ? 1 : -PALE_BAD_INPUT);
        if (n <= DNS_ALIASES_MAX)
            assert_int_equal(f.count, 1);
    }
    for (unsigned n = 1; n < 8; n++) {
        assert_int_equal(chain(n, true), -PALE_BAD_INPUT);
        assert_non_null(strstr(e.text, "chain of aliases"));
    }
}

static void many_addresses_are_cut_and_repeated_ones_told_once(void **state)
{
    (void)state;
    ask("github.com", DNS_A);
    begin(0x8180, 200, 0, 0);
    for (unsigned i = 0; i < 200; i++)
        put(ASKED, DNS_A, 300 - i, (const uint8_t[]){8, 8, 8, (uint8_t)(i / 2)}, 4);
    assert_int_equal(parse(), 1);
    assert_true(f.count == DNS_ADDRESSES_MAX && f.ttl == 101);
    for (unsigned i = 0; i < f.count; i++)
        assert_int_equal(f.address[i].byte[3], i);
    begin(0x8180, DNS_RECORDS_MAX, 0, 1);
    for (unsigned i = 0; i < DNS_RECORDS_MAX; i++)
        put(ASKED, DNS_A, 1, "\1\2\3\4", 4);
    dnswire_put(&w, EXTENSION);
    assert_int_equal(parse(), -PALE_BAD_INPUT);
}

/* Each is an answer to the question, and broken. */
static void broken_answers_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        const char *record;
        size_t len;
    } rows[] = {
        {"an address of three bytes", "\xc0\x0c\0\1\0\1\0\0\0\0\0\3\1\2\3", 15},
        {"an address of five bytes", "\xc0\x0c\0\1\0\1\0\0\0\0\0\5\1\2\3\4\5", 17},
        {"an address beyond the end", "\xc0\x0c\0\1\0\1\0\0\0\0\0\5\1\2\3\4", 16},
        {"an owner that leads forwards", "\xc0\x40\0\1\0\1\0\0\0\0\0\4\1\2\3\4", 16},
        {"an owner that leads to itself", "\xc0\x1c\0\1\0\1\0\0\0\0\0\4\1\2\3\4", 16},
        {"an owner that leads into the head", "\xc0\x0b\0\1\0\1\0\0\0\0\0\4\1\2\3\4", 16},
        {"an alias with something behind it", "\xc0\x0c\0\5\0\1\0\0\0\0\0\4\1a\0x", 16},
        {"an alias that is cut", "\xc0\x0c\0\5\0\1\0\0\0\0\0\2\1a", 14},
        {"an alias of nothing", "\xc0\x0c\0\5\0\1\0\0\0\0\0\0", 12},
        {"an alias that leads to itself", "\xc0\x0c\0\5\0\1\0\0\0\0\0\2\xc0\x28", 14},
        {"the extension among the answers", EXTENSION},
    };
    ask("github.com", DNS_A);
    for (size_t i = 0; i < COUNT(rows); i++) {
        begin(0x8180, 1, 0, 0);
        dnswire_put(&w, rows[i].record, rows[i].len);
        e.text[0] = 0;
        if (parse_exact(w.at) >= 0)
            fail_msg("%s is taken", rows[i].what);
        assert_non_null(strstr(e.text, "name server"));
    }
    begin(0x8180, 0, 0, 2);
    dnswire_put(&w, EXTENSION);
    dnswire_put(&w, EXTENSION);
    assert_int_equal(parse(), -PALE_BAD_INPUT);
    begin(0x8180, 2, 0, 0);
    put(ASKED, DNS_CNAME, 1, NAME("\1b"));
    put(ASKED, DNS_CNAME, 1, NAME("\1c"));
    assert_int_equal(parse(), -PALE_BAD_INPUT);
    /* What stood in ret stays. */
    f = (struct dns_found){.count = 77};
    assert_int_equal(parse(), -PALE_BAD_INPUT);
    assert_int_equal(f.count, 77);
}

TESTS(cmocka_unit_test(questions_are_written), cmocka_unit_test(addresses_are_found_at_the_end_of_a_chain),
      cmocka_unit_test(what_does_not_answer_the_question_may_be_followed_by_what_does), cmocka_unit_test(results_are_told),
      cmocka_unit_test(other_families_and_classes_are_read_over), cmocka_unit_test(chains_end),
      cmocka_unit_test(many_addresses_are_cut_and_repeated_ones_told_once), cmocka_unit_test(broken_answers_are_refused))
