/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: DNS queries from boxes with our answers to them, and answers of name servers. The first byte chooses. Every message stands
 * in memory of just its length. */
#include <assert.h>
#include <stdlib.h>

#include "base/limits.h"
#include "input.h"
#include "net/dnslookup.h"
#include "net/dnsmsg.h"

static uint8_t answer[DNS_ANSWER_BYTES], again[DNS_ANSWER_BYTES];

static uint8_t *copy_of(const uint8_t *p, size_t n)
{
    uint8_t *m = malloc(n ? n : 1);
    assert(m);
    memcpy(m, p, n);
    return m;
}

/* What an answer of ours says, our own reader of answers reads. */
static void check_answer(const struct dns_query *q, const struct dns_answer *a, bool stream)
{
    struct dns_found f;
    struct pale_err e = {0};
    unsigned family = q->question.type == DNS_A ? ADDRESS_V4 : q->question.type == DNS_AAAA ? ADDRESS_V6 : 0;
    size_t n = dnsmsg_answer(q, a, stream, answer), head = stream ? 2 : 0, told = 0;
    assert(n <= (stream ? DNS_ANSWER_BYTES : q->datagram_bytes));
    assert(!stream || ((size_t)answer[0] << 8 | answer[1]) == n - 2);
    uint8_t *m = copy_of(answer + head, n - head);
    assert(dnslookup_parse(&q->question, m, n - head, &f, &e) == 1);
    assert(f.result == a->result && !(stream && f.truncated));
    for (size_t i = 0; i < a->count && a->result == DNS_NOERROR && !f.truncated; i++)
        if (a->address[i].family == family && told < DNS_ADDRESSES_MAX)
            assert(memcmp(&f.address[told++], &a->address[i], sizeof(struct address)) == 0);
    if (family)
        assert(f.count == told && (told == 0 || f.ttl == (a->ttl > INT32_MAX ? 0 : a->ttl)));
    free(m);
}

/* A query, after a byte that says how it is answered. */
static void try_query(struct input *in)
{
    static const enum dns_result results[] = {DNS_NOERROR, DNS_NXDOMAIN, DNS_REFUSED, DNS_SERVFAIL};
    struct address list[DNS_ADDRESSES_MAX + 4];
    unsigned how = input_byte(in);
    struct dns_query q, part;
    struct dns_answer a = {
        .result = results[how & 3], .address = list, .count = how >> 2 & 63, .ttl = how * 9999999u, .text = "no rule allows it"};
    size_t n = 0;
    a.count = a.count > DNS_ADDRESSES_MAX + 4 ? DNS_ADDRESSES_MAX + 4 : a.count;
    for (size_t i = 0; i < a.count; i++)
        list[i] =
            how & 0x80 && i % 3 == 0 ? (struct address){ADDRESS_V4, {1, 2, (uint8_t)i}} : (struct address){ADDRESS_V6, {0x20, (uint8_t)i}};
    int r = dnsmsg_parse(in->at, in->left, &q);
    n = dnsmsg_fault(in->at, in->left, r < 0 ? r : -DNS_SERVFAIL, how & 1, again);
    assert(n == 0 ? r == -DNS_IGNORE : (n == 12 || n == 14 || n == 23 || n == 25) && r != -DNS_IGNORE);
    if (dnsmsg_frame(in->at, in->left, &n) == 1)
        assert(n <= in->left - 2 && n <= DNS_DATAGRAM_BYTES_MAX);
    if (r < 0)
        return;
    assert(in->left > 16 && in->left <= DNS_DATAGRAM_BYTES_MAX && q.datagram_bytes >= 512 && q.datagram_bytes <= 1232);
    assert(memcmp(in->at + 12, q.question.name.byte, q.question.name.len) == 0);
    for (n = in->left - 1; n > in->left - 12; n--)
        assert(dnsmsg_parse(in->at, n, &part) < 0);
    if (q.trouble == HOSTNAME_GOOD) {
        struct dns_name name;
        dnswire_from_host(&q.host, &name);
        assert(dnswire_same_name(&name, &q.question.name));
    }
    check_answer(&q, &a, false);
    check_answer(&q, &a, true);
}

/* Any bytes behind the head and question of an answer to a question of ours; or any bytes at all. */
static void try_reply(struct input *in)
{
    static const struct hostname host = {5, "a.b.c"};
    unsigned how = input_byte(in);
    struct dns_question q;
    struct dns_found f, part;
    struct pale_err e = {0};
    uint8_t m[1024];
    struct dns_writer w = {.message = m, .cap = sizeof(m)};
    dnslookup_question(0x1234, how & 1 ? DNS_AAAA : DNS_A, &host, &q);
    struct dns_head h = {.id = 0x1234, .flags = DNS_RESPONSE, .questions = 1};
    if (how & 2) {
        h.flags = (uint16_t)(DNS_RESPONSE | (how & 4 ? DNS_TRUNCATED : 0) | (how & 8 ? 3 : 0));
        h.answers = input_byte(in);
        h.authorities = how >> 4 & 3;
        h.additionals = how >> 6;
        dnswire_put_head(&w, &h);
        dnswire_put(&w, q.name.byte, q.name.len);
        dnswire_put_u16(&w, q.type);
        dnswire_put_u16(&w, DNS_IN);
    }
    dnswire_put(&w, in->at, in->left < 512 ? in->left : 512);
    uint8_t *copy = copy_of(m, w.at);
    int r = dnslookup_parse(&q, copy, w.at, &f, &e);
    assert(r >= 0 || e.text[0]);
    if (r == 1) {
        assert(f.count <= DNS_ADDRESSES_MAX && (f.count == 0 || (f.result == DNS_NOERROR && !f.truncated)) && f.ttl <= INT32_MAX);
        for (size_t i = 0; i < f.count; i++)
            assert(f.address[i].family == (how & 1 ? ADDRESS_V6 : ADDRESS_V4));
        /* The same from memory of another length, and no prefix. */
        if (!f.truncated)
            assert(dnslookup_parse(&q, m, w.at - 1, &part, &e) <= 0);
    }
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    (input_byte(&in) & 1 ? try_reply : try_query)(&in);
    return 0;
}
