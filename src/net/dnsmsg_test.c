/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for net/dnsmsg. tests/system/test_names.py has ldns and dnspython read and write the same. */
#include "base/test.h"

#include "net/dnsmsg.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* "GitHub.com", class IN, type A, as a resolver asks; then the extension with an option, of 1232 bytes. */
static const uint8_t plain[] = "\x12\x34\1\0\0\1\0\0\0\0\0\0\6GitHub\3com\0\0\1\0\1";
static const uint8_t extended[] = "\x12\x34\1\x20\0\1\0\0\0\0\0\1\6GitHub\3com\0\0\1\0\1\0\0\x29\4\xd0\0\0\x80\0\0\6\0\xa\0\2xy";
#define PLAIN (sizeof(plain) - 1)
#define EXTENDED (sizeof(extended) - 1)

static struct dns_query q;
static uint8_t m[DNS_ANSWER_BYTES];

static void queries_are_read(void **state)
{
    (void)state;
    assert_int_equal(dnsmsg_parse(plain, PLAIN, &q), 0);
    assert_true(q.question.id == 0x1234 && q.question.type == DNS_A && q.recursion_desired && !q.checking_disabled && !q.extended);
    assert_int_equal(q.datagram_bytes, 512);
    assert_int_equal(q.trouble, HOSTNAME_GOOD);
    assert_string_equal(q.host.text, "github.com");
    assert_memory_equal(q.question.name.byte, plain + 12, 12);
    assert_int_equal(dnsmsg_parse(extended, EXTENDED, &q), 0);
    assert_true(q.extended && q.dnssec_ok && q.datagram_bytes == 1232);
}

/* No prefix is a query, and nothing may come behind one. */
static void queries_are_read_as_a_whole_or_not(void **state)
{
    (void)state;
    uint8_t longer[EXTENDED + 1] = {0};
    for (size_t n = 0; n < PLAIN; n++)
        assert_int_equal(dnsmsg_parse(plain, n, &q), n < 12 ? -DNS_IGNORE : -DNS_FORMERR);
    for (size_t n = 0; n < EXTENDED; n++)
        assert_int_equal(dnsmsg_parse(extended, n, &q), n < 12 ? -DNS_IGNORE : -DNS_FORMERR);
    memcpy(longer, extended, EXTENDED);
    assert_int_equal(dnsmsg_parse(longer, EXTENDED + 1, &q), -DNS_FORMERR);
    memcpy(longer, plain, PLAIN);
    assert_int_equal(dnsmsg_parse(longer, PLAIN + 1, &q), -DNS_FORMERR);
}

/* One byte of the longer query is another: what is said then. */
static void what_is_no_plain_question_is_refused(void **state)
{
    (void)state;
    static const struct {
        size_t at;
        uint8_t byte;
        int answer;
    } rows[] = {
        {2, 0x81, -DNS_IGNORE},   /* an answer */
        {2, 0x09, -DNS_NOTIMP},   /* other operations */
        {2, 0x29, -DNS_NOTIMP},   /* … an update */
        {2, 0x05, -DNS_FORMERR},  /* flags that only answers have */
        {2, 0x03, -DNS_FORMERR},  /* … */
        {3, 0x80, -DNS_FORMERR},  /* … */
        {3, 0x40, -DNS_FORMERR},  /* … */
        {3, 0x03, -DNS_FORMERR},  /* a result */
        {2, 0x00, 0},             /* no recursion */
        {3, 0x30, 0},             /* authentic data, checking disabled */
        {5, 0, -DNS_FORMERR},     /* no question */
        {5, 2, -DNS_FORMERR},     /* two */
        {4, 1, -DNS_FORMERR},     /* 257 */
        {7, 1, -DNS_FORMERR},     /* answers */
        {9, 1, -DNS_FORMERR},     /* authorities */
        {11, 0, -DNS_FORMERR},    /* an extension that is not counted */
        {11, 2, -DNS_FORMERR},    /* one that is not there */
        {12, 0xc0, -DNS_FORMERR}, /* a pointer as the name */
        {12, 0x46, -DNS_FORMERR}, /* a label of a kind that there is not */
        {19, 0xc0, -DNS_FORMERR}, /* a pointer in the name */
        {25, 41, -DNS_FORMERR},   /* asks for the extension */
        {25, 0, -DNS_FORMERR},    /* asks for nothing */
        {25, 255, 0},             /* for anything, which is not for us to judge */
        {25, 16, 0},              /* text */
        {27, 3, -DNS_REFUSED},    /* class CH */
        {27, 255, -DNS_REFUSED},  /* any class */
        {28, 1, -DNS_FORMERR},    /* the extension of a name */
        {30, 1, -DNS_FORMERR},    /* another record in its place */
        {33, 1, -DNS_FORMERR},    /* the upper half of a result */
        {34, 1, -DNS_BADVERS},    /* its next version */
        {38, 5, -DNS_FORMERR},    /* options that are cut */
        {42, 3, -DNS_FORMERR},    /* … */
        {42, 1, -DNS_FORMERR},    /* … */
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        uint8_t changed[EXTENDED];
        memcpy(changed, extended, EXTENDED);
        changed[rows[i].at] = rows[i].byte;
        int r = dnsmsg_parse(changed, EXTENDED, &q);
        if (r != rows[i].answer)
            fail_msg("byte %zu = %u: %d", rows[i].at, rows[i].byte, r);
        size_t n = dnsmsg_fault(changed, EXTENDED, r < 0 ? r : -DNS_SERVFAIL, false, m);
        assert_int_equal(n, r == -DNS_IGNORE ? 0 : r == -DNS_BADVERS ? 23 : 12);
        if (n)
            assert_true(m[0] == 0x12 && m[1] == 0x34 && (m[2] & 0x80) && (m[3] & 0xf) == ((r < 0 ? -r : DNS_SERVFAIL) & 0xf));
        if (n > 12)
            assert_memory_equal(m + 12, "\0\0\x29\4\xd0\1\0\0\0\0\0", 11);
    }
}

static void names_that_are_no_hosts_are_questions_all_the_same(void **state)
{
    (void)state;
    static const uint8_t service[] = "\0\1\0\0\0\1\0\0\0\0\0\0\5_http\3org\0\0\x21\0\1", root[] = "\0\1\0\0\0\1\0\0\0\0\0\0\0\0\2\0\1",
                         dotted[] = "\0\1\0\0\0\1\0\0\0\0\0\0\12github.com\0\0\1\0\1",
                         nul[] = "\0\1\0\0\0\1\0\0\0\0\0\0\3a\0b\3org\0\0\1\0\1";
    char text[DNS_NAME_BYTES];
    assert_int_equal(dnsmsg_parse(service, sizeof(service) - 1, &q), 0);
    assert_int_equal(q.trouble, HOSTNAME_BYTE);
    assert_int_equal(dnswire_text(&q.question.name, text), 9);
    assert_string_equal(text, "_http.org");
    assert_int_equal(dnsmsg_parse(root, sizeof(root) - 1, &q), 0);
    assert_int_equal(q.trouble, HOSTNAME_LENGTH);
    assert_int_equal(dnsmsg_parse(dotted, sizeof(dotted) - 1, &q), 0);
    assert_int_equal(q.trouble, HOSTNAME_BYTE);
    assert_int_equal(dnsmsg_parse(nul, sizeof(nul) - 1, &q), 0);
    assert_int_equal(q.trouble, HOSTNAME_BYTE);
}

static void the_extension_belongs_to_the_root(void **state)
{
    (void)state;
    static const uint8_t named[] = "\0\1\0\0\0\1\0\0\0\0\0\1\1a\0\0\1\0\1\1a\0\0\x29\4\xd0\0\0\0\0\0\0",
                         pointed[] = "\0\1\0\0\0\1\0\0\0\0\0\1\1a\0\0\1\0\1\xc0\xe\0\x29\4\xd0\0\0\0\0\0\0";
    assert_int_equal(dnsmsg_parse(named, sizeof(named) - 1, &q), -DNS_FORMERR);
    assert_int_equal(dnsmsg_parse(pointed, sizeof(pointed) - 1, &q), -DNS_FORMERR);
}

static void long_queries_have_an_end(void **state)
{
    (void)state;
    uint8_t longer[1300] = {0};
    for (size_t n = 500; n <= 1240; n++) {
        memcpy(longer, extended, EXTENDED);
        size_t options = n - 39;
        longer[37] = (uint8_t)(options >> 8);
        longer[38] = (uint8_t)options;
        longer[41] = (uint8_t)((options - 4) >> 8);
        longer[42] = (uint8_t)(options - 4);
        assert_int_equal(dnsmsg_parse(longer, n, &q), n <= 1232 ? 0 : -DNS_FORMERR);
    }
}

static void streams_are_cut_into_messages(void **state)
{
    (void)state;
    size_t len = 0;
    uint8_t stream[2 + PLAIN] = {0, PLAIN};
    memcpy(stream + 2, plain, PLAIN);
    for (size_t n = 0; n < sizeof(stream); n++)
        assert_int_equal(dnsmsg_frame(stream, n, &len), 0);
    assert_int_equal(dnsmsg_frame(stream, sizeof(stream), &len), 1);
    assert_int_equal(len, PLAIN);
    assert_int_equal(dnsmsg_frame((const uint8_t[]){0x04, 0xd1}, 2, &len), -1);
    assert_int_equal(dnsmsg_frame((const uint8_t[]){0x04, 0xd0}, 2, &len), 0);
}

static struct address four(uint8_t last)
{
    return (struct address){ADDRESS_V4, {192, 0, 2, last}};
}

static void addresses_are_told_with_the_question_as_it_was_asked(void **state)
{
    (void)state;
    const struct address list[] = {four(1), {ADDRESS_V6, {0x20, 1, [15] = 9}}, four(2)};
    const struct dns_answer a = {.address = list, .count = 3, .ttl = 60};
    static const uint8_t want[] = "\x12\x34\x81\x80\0\1\0\2\0\0\0\0\6GitHub\3com\0\0\1\0\1"
                                  "\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\xc0\0\2\1"
                                  "\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\xc0\0\2\2";
    assert_int_equal(dnsmsg_parse(plain, PLAIN, &q), 0);
    assert_int_equal(dnsmsg_answer(&q, &a, false, m), sizeof(want) - 1);
    assert_memory_equal(m, want, sizeof(want) - 1);
    assert_int_equal(dnsmsg_answer(&q, &a, true, m), sizeof(want) + 1);
    assert_memory_equal(m + 2, want, sizeof(want) - 1);
    assert_true(m[0] == 0 && m[1] == sizeof(want) - 1);
    q.question.type = DNS_AAAA;
    assert_int_equal(dnsmsg_answer(&q, &a, false, m), PLAIN + 28);
    assert_memory_equal(m + PLAIN + 12, list[1].byte, 16);
    /* What else is asked for is not there. */
    q.question.type = 16;
    dnsmsg_answer(&q, &a, false, m);
    assert_true(m[7] == 0 && m[9] == 1 && (m[3] & 0xf) == 0);
}

static void that_there_is_nothing_has_a_time_too(void **state)
{
    (void)state;
    static const uint8_t zone[] = "\xc0\x0c\0\6\0\1\0\0\0\x1e\0\x16\0\0\0\0\0\1\0\0\0\x1e\0\0\0\x1e\0\0\0\x1e\0\0\0\x1e";
    static const enum dns_result results[] = {DNS_NOERROR, DNS_NXDOMAIN, DNS_REFUSED, DNS_SERVFAIL};
    assert_int_equal(dnsmsg_parse(plain, PLAIN, &q), 0);
    for (size_t i = 0; i < COUNT(results); i++) {
        const struct dns_answer a = {.result = results[i], .ttl = 30};
        size_t n = dnsmsg_answer(&q, &a, false, m);
        assert_int_equal(m[3] & 0xf, results[i]);
        assert_int_equal(n, i < 2 ? PLAIN + sizeof(zone) - 1 : PLAIN);
        if (i < 2)
            assert_memory_equal(m + PLAIN, zone, sizeof(zone) - 1);
    }
}

static void a_refusal_tells_why_to_those_who_understand(void **state)
{
    (void)state;
    struct dns_answer a = {.result = DNS_REFUSED, .reason = DNS_REASON_BLOCKED, .text = "no rule"};
    static const uint8_t reason[] = "\0\0\x29\4\xd0\0\0\x80\0\0\xd\0\xf\0\x9\0\xfno rule";
    char text[400];
    assert_int_equal(dnsmsg_parse(extended, EXTENDED, &q), 0);
    size_t n = dnsmsg_answer(&q, &a, false, m);
    assert_int_equal(n, PLAIN + sizeof(reason) - 1);
    assert_memory_equal(m + PLAIN, reason, sizeof(reason) - 1);
    assert_int_equal(m[11], 1);
    q.extended = false;
    assert_int_equal(dnsmsg_answer(&q, &a, false, m), PLAIN);
    /* A long one is cut between characters. */
    q.extended = true;
    for (size_t lead = 0; lead < 3; lead++) {
        memset(text, 'a', lead);
        for (size_t i = lead; i + 3 < sizeof(text); i += 3)
            memcpy(text + i, "\xe2\x82\xac", 4);
        a.text = text;
        n = dnsmsg_answer(&q, &a, false, m);
        assert_int_equal((n - PLAIN - 17 - lead) % 3, 0);
        assert_true(n - PLAIN - 17 <= DNS_TEXT_MAX && n - PLAIN - 17 > DNS_TEXT_MAX - 3);
    }
}

/* A datagram never passes what the asker takes; on a stream everything fits. */
static void answers_are_cut_to_what_the_asker_takes(void **state)
{
    (void)state;
    struct address list[DNS_ADDRESSES_MAX + 8];
    char text[300];
    for (size_t i = 0; i < COUNT(list); i++)
        list[i] = (struct address){ADDRESS_V6, {0x20, (uint8_t)i}};
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = 0;
    for (int with = 0; with < 2; with++) {
        assert_int_equal(dnsmsg_parse(with ? extended : plain, with ? EXTENDED : PLAIN, &q), 0);
        q.question.type = DNS_AAAA;
        /* The longest name there is. */
        for (size_t i = 0; i < 254; i += 2)
            memcpy(q.question.name.byte + i, "\1a", 2);
        q.question.name.byte[254] = 0;
        q.question.name.len = 255;
        for (size_t bytes = 512; bytes <= (with ? 1232 : 512); bytes++)
            for (size_t count = 0; count <= COUNT(list); count++) {
                const struct dns_answer a = {.address = list, .count = count, .ttl = 1, .text = text};
                size_t most = count < DNS_ADDRESSES_MAX ? count : DNS_ADDRESSES_MAX;
                q.datagram_bytes = (uint16_t)bytes;
                size_t n = dnsmsg_answer(&q, &a, false, m);
                bool cut = m[2] & 2;
                assert_true(n <= bytes && (cut ? m[7] < most && n + 28 + 200 + 6 > bytes : m[7] == most));
                assert_int_equal(cut, 12 + 259 + 28 * most + (with ? 11 : 0) > bytes && most > 0);
                n = dnsmsg_answer(&q, &a, true, m);
                assert_true(n <= sizeof(m) && m[2 + 7] == most && !(m[4] & 2));
            }
    }
}

TESTS(cmocka_unit_test(queries_are_read), cmocka_unit_test(queries_are_read_as_a_whole_or_not),
      cmocka_unit_test(what_is_no_plain_question_is_refused), cmocka_unit_test(names_that_are_no_hosts_are_questions_all_the_same),
      cmocka_unit_test(the_extension_belongs_to_the_root), cmocka_unit_test(long_queries_have_an_end),
      cmocka_unit_test(streams_are_cut_into_messages), cmocka_unit_test(addresses_are_told_with_the_question_as_it_was_asked),
      cmocka_unit_test(that_there_is_nothing_has_a_time_too), cmocka_unit_test(a_refusal_tells_why_to_those_who_understand),
      cmocka_unit_test(answers_are_cut_to_what_the_asker_takes))
