/* SPDX-License-Identifier: Apache-2.0 */
/* Owns DNS queries and our answers to them. Pure.
 *
 * How it works: a query comes from a box and is hostile. It is read once, in order, and there must be nothing left; the answer is made anew
 * from what was understood, so that no byte of a query gets anywhere by being copied but for a question that was checked. There are no
 * pointers in a query: its one name stands first. */
#include "net/dnsmsg.h"

#include <assert.h>
#include <string.h>

#define EXTENSION_BYTES 11u      /* the record without its options */
#define QUESTION_POINTER 0xc00cu /* the name behind the head */
#define FLAGS_OF_NO_QUERY (DNS_AUTHORITATIVE | DNS_TRUNCATED | DNS_RECURSION_AVAILABLE | DNS_ZERO | 0xf)
#define DNSSEC_OK 0x8000u
#define OPTION_REASON 15u

/* The longest question, all addresses in their longer form, the record of a zone, the extension and a reason. */
static_assert(2 + DNS_HEAD_BYTES + DNS_NAME_BYTES + 4 + DNS_ADDRESSES_MAX * 28 + 34 + EXTENSION_BYTES + 6 + DNS_TEXT_MAX <=
                  DNS_ANSWER_BYTES,
              "on a stream everything fits");

/* --- queries --- */

/* The options must be whole; none is obeyed. */
static bool are_options(const uint8_t *p, size_t n)
{
    struct dns_cursor c = {.message = p, .len = n};
    while (c.at < c.len && !c.bad) {
        (void)dnswire_u16(&c);
        dnswire_skip(&c, dnswire_u16(&c));
    }
    return !c.bad;
}

/* The extension: the class is a size, and the time to live is result, version and flags. */
static int take_extension(struct dns_cursor *c, struct dns_query *ret)
{
    struct dns_record r;
    bool rooted = c->at < c->len && c->message[c->at] == 0; /* no pointer to it will do */
    dnswire_record(c, &r);
    if (c->bad || r.type != DNS_OPT || !rooted || r.ttl >> 24 || !are_options(c->message + r.data, r.data_len))
        return -DNS_FORMERR;
    if (r.ttl >> 16 & 0xff)
        return -DNS_BADVERS;
    ret->extended = true;
    ret->dnssec_ok = r.ttl & DNSSEC_OK;
    ret->datagram_bytes = r.class < DNS_PLAIN_BYTES_MAX      ? DNS_PLAIN_BYTES_MAX
                          : r.class > DNS_DATAGRAM_BYTES_MAX ? DNS_DATAGRAM_BYTES_MAX
                                                             : r.class;
    return 0;
}

static int take_question(struct dns_cursor *c, struct dns_question *ret)
{
    dnswire_name(c, false, &ret->name);
    ret->type = dnswire_u16(c);
    unsigned class = dnswire_u16(c);
    if (c->bad || ret->type == DNS_OPT || ret->type == 0)
        return -DNS_FORMERR;
    return class == DNS_IN ? 0 : -DNS_REFUSED;
}

int dnsmsg_parse(const uint8_t *p, size_t n, struct dns_query *ret)
{
    struct dns_cursor c = {.message = p, .len = n};
    struct dns_query q = {.datagram_bytes = DNS_PLAIN_BYTES_MAX};
    struct dns_head h;
    dnswire_head(&c, &h);
    if (c.bad || (h.flags & DNS_RESPONSE))
        return -DNS_IGNORE;
    if (h.flags & DNS_OPCODE)
        return -DNS_NOTIMP;
    if ((h.flags & FLAGS_OF_NO_QUERY) || h.questions != 1 || h.answers || h.authorities || h.additionals > 1 || n > DNS_DATAGRAM_BYTES_MAX)
        return -DNS_FORMERR;
    q.question.id = h.id;
    q.recursion_desired = h.flags & DNS_RECURSION_DESIRED;
    q.checking_disabled = h.flags & DNS_CHECKING_DISABLED;
    int r = take_question(&c, &q.question);
    if (r == 0 && h.additionals)
        r = take_extension(&c, &q);
    if (r == 0 && c.at != n)
        r = -DNS_FORMERR;
    if (r < 0)
        return r;
    q.trouble = dnswire_host(&q.question.name, &q.host);
    *ret = q;
    return 0;
}

int dnsmsg_frame(const uint8_t *p, size_t n, size_t *ret_len)
{
    if (n < 2)
        return 0;
    size_t len = (size_t)p[0] << 8 | p[1];
    if (len > DNS_DATAGRAM_BYTES_MAX)
        return -1;
    if (n - 2 < len)
        return 0;
    *ret_len = len;
    return 1;
}

/* --- answers --- */

static void put_record(struct dns_writer *w, enum dns_type type, uint32_t ttl, size_t len)
{
    dnswire_put_u16(w, QUESTION_POINTER);
    dnswire_put_u16(w, type);
    dnswire_put_u16(w, DNS_IN);
    dnswire_put_u32(w, ttl);
    dnswire_put_u16(w, (unsigned)len);
}

/* Writes those that fit, counts them in *count, and returns false if some did not. */
static bool put_addresses(struct dns_writer *w, const struct dns_query *q, const struct dns_answer *a, uint16_t *count)
{
    unsigned family = q->question.type == DNS_A ? ADDRESS_V4 : q->question.type == DNS_AAAA ? ADDRESS_V6 : 0;
    size_t len = family == ADDRESS_V4 ? 4 : 16;
    for (size_t i = 0; family && i < a->count && *count < DNS_ADDRESSES_MAX; i++) {
        struct dns_writer before = *w;
        if (a->address[i].family != family)
            continue;
        put_record(w, (enum dns_type)q->question.type, a->ttl, len);
        dnswire_put(w, a->address[i].byte, len);
        if (w->full) {
            *w = before;
            return false;
        }
        ++*count;
    }
    return true;
}

/* There being nothing is remembered for as long as this record says (RFC 2308). It names nobody: no server but us exists. */
static void put_zone(struct dns_writer *w, uint32_t ttl)
{
    put_record(w, DNS_SOA, ttl, 22);
    dnswire_put_u16(w, 0); /* two names, both the root */
    for (int i = 0; i < 5; i++)
        dnswire_put_u32(w, i == 0 ? 1 : ttl); /* a serial number, and times */
}

/* How much of a text may be told: never part of a character. */
static size_t cut_text(const char *text, size_t room)
{
    size_t most = room < DNS_TEXT_MAX ? room : DNS_TEXT_MAX, n = strnlen(text, most + 1);
    if (n <= most)
        return n;
    for (n = most; n > 0 && ((uint8_t)text[n] & 0xc0) == 0x80;)
        n--;
    return n;
}

/* Room for the extension itself was kept. */
static void put_extension(struct dns_writer *w, bool dnssec_ok, enum dns_result result, const struct dns_answer *a)
{
    size_t room = w->cap - w->at, text = a && a->text && room > EXTENSION_BYTES + 6 ? cut_text(a->text, room - EXTENSION_BYTES - 6) : 0;
    dnswire_put(w, "", 1);
    dnswire_put_u16(w, DNS_OPT);
    dnswire_put_u16(w, DNS_DATAGRAM_BYTES_MAX);
    dnswire_put_u32(w, (uint32_t)result >> 4 << 24 | (dnssec_ok ? DNSSEC_OK : 0));
    dnswire_put_u16(w, text ? (unsigned)text + 6 : 0);
    if (!text)
        return;
    dnswire_put_u16(w, OPTION_REASON);
    dnswire_put_u16(w, (unsigned)text + 2);
    dnswire_put_u16(w, a->reason);
    dnswire_put(w, a->text, text);
}

/* The head once more, now that its numbers are known; before it the length, if it goes to a stream. */
static size_t finish(const struct dns_writer *w, const struct dns_head *h, bool stream, uint8_t *ret)
{
    struct dns_writer front = {.message = ret, .cap = 2 + DNS_HEAD_BYTES};
    assert(!w->full);
    if (stream)
        dnswire_put_u16(&front, (unsigned)w->at);
    dnswire_put_head(&front, h);
    return (stream ? 2 : 0) + w->at;
}

size_t dnsmsg_answer(const struct dns_query *q, const struct dns_answer *a, bool stream, uint8_t ret[DNS_ANSWER_BYTES])
{
    struct dns_head h = {.id = q->question.id, .questions = 1};
    struct dns_writer w = {.message = ret + (stream ? 2 : 0), .cap = stream ? DNS_ANSWER_BYTES - 2 : q->datagram_bytes};
    size_t kept = q->extended ? EXTENSION_BYTES : 0;
    w.cap -= kept;
    dnswire_put_head(&w, &h);
    dnswire_put(&w, q->question.name.byte, q->question.name.len);
    dnswire_put_u16(&w, q->question.type);
    dnswire_put_u16(&w, DNS_IN);
    bool all = a->result != DNS_NOERROR || put_addresses(&w, q, a, &h.answers);
    if (all && h.answers == 0 && (a->result == DNS_NOERROR || a->result == DNS_NXDOMAIN)) {
        put_zone(&w, a->ttl);
        h.authorities = 1;
    }
    w.cap += kept;
    if (q->extended) {
        put_extension(&w, q->dnssec_ok, a->result, a);
        h.additionals = 1;
    }
    h.flags =
        (uint16_t)(DNS_RESPONSE | DNS_RECURSION_AVAILABLE | (all ? 0 : DNS_TRUNCATED) | (q->recursion_desired ? DNS_RECURSION_DESIRED : 0) |
                   (q->checking_disabled ? DNS_CHECKING_DISABLED : 0) | (a->result & 0xf));
    return finish(&w, &h, stream, ret);
}

size_t dnsmsg_fault(const uint8_t *p, size_t n, int fault, bool stream, uint8_t ret[DNS_ANSWER_BYTES])
{
    struct dns_cursor c = {.message = p, .len = n};
    struct dns_writer w = {.message = ret + (stream ? 2 : 0), .cap = DNS_PLAIN_BYTES_MAX};
    struct dns_head asked, h = {0};
    dnswire_head(&c, &asked);
    if (c.bad || fault == -DNS_IGNORE)
        return 0;
    h.id = asked.id;
    h.flags = (uint16_t)(DNS_RESPONSE | (asked.flags & (DNS_OPCODE | DNS_RECURSION_DESIRED)) | (-fault & 0xf));
    dnswire_put_head(&w, &h);
    if (-fault > 0xf) {
        put_extension(&w, false, (enum dns_result) - fault, NULL);
        h.additionals = 1;
    }
    return finish(&w, &h, stream, ret);
}
