/* SPDX-License-Identifier: Apache-2.0 */
/* Owns our questions to name servers and the reading of their answers. Pure.
 *
 * How it works: first every record of every section is walked over, and the last one must end where the message does. Then the chain of
 * aliases is followed from the name that was asked, each link by one search through the answers, and the addresses at its end are taken.
 * Whatever belongs to other names, types and classes is read over. Records are bounded in number, links of the chain too, so that a circle
 * is a chain that is too long. */
#include "net/dnslookup.h"

#include <assert.h>
#include <string.h>

void dnslookup_question(uint16_t id, enum dns_type type, const struct hostname *host, struct dns_question *ret)
{
    assert(type == DNS_A || type == DNS_AAAA);
    *ret = (struct dns_question){.id = id, .type = (uint16_t)type};
    dnswire_from_host(host, &ret->name);
}

size_t dnslookup_write(const struct dns_question *q, bool stream, uint8_t ret[DNS_LOOKUP_BYTES])
{
    const struct dns_head h = {.id = q->id, .flags = DNS_RECURSION_DESIRED, .questions = 1, .additionals = 1};
    struct dns_writer w = {.message = ret, .cap = DNS_LOOKUP_BYTES};
    if (stream)
        dnswire_put_u16(&w, (unsigned)(DNS_HEAD_BYTES + q->name.len + 4 + 11));
    dnswire_put_head(&w, &h);
    dnswire_put(&w, q->name.byte, q->name.len);
    dnswire_put_u16(&w, q->type);
    dnswire_put_u16(&w, DNS_IN);
    dnswire_put(&w, "", 1);
    dnswire_put_u16(&w, DNS_OPT);
    dnswire_put_u16(&w, DNS_DATAGRAM_BYTES_MAX);
    dnswire_put_u32(&w, 0);
    dnswire_put_u16(&w, 0);
    return w.at;
}

static int broken(const char *why, struct pale_err *e)
{
    return err_set(e, PALE_BAD_INPUT, "the name server's answer %s", why);
}

/* Is this the question that was asked, and nothing beside it? */
static bool is_answer_to(const struct dns_question *q, const struct dns_head *h, struct dns_cursor *c)
{
    struct dns_name name;
    if (c->bad || h->id != q->id || (h->flags & (DNS_RESPONSE | DNS_OPCODE)) != DNS_RESPONSE || h->questions != 1)
        return false;
    dnswire_name(c, false, &name);
    unsigned type = dnswire_u16(c), class = dnswire_u16(c);
    return !c->bad && type == q->type && class == DNS_IN && name.len == q->name.len && memcmp(name.byte, q->name.byte, name.len) == 0;
}

/* Walks over all records. The extension stands among the last ones and holds the upper bits of the result. */
static int check_records(struct dns_cursor c, const struct dns_head *h, unsigned *result, struct pale_err *e)
{
    size_t first = (size_t)h->answers + h->authorities, all = first + h->additionals, extensions = 0;
    struct dns_record r;
    if (all > DNS_RECORDS_MAX)
        return broken("has too many records", e);
    for (size_t i = 0; i < all; i++) {
        dnswire_record(&c, &r);
        if (c.bad)
            return broken("has a record that is none", e);
        if (r.type != DNS_OPT)
            continue;
        if (i < first || r.owner.len != 1 || ++extensions > 1)
            return broken("has the extension where it may not be", e);
        *result |= r.ttl >> 24 << 4;
    }
    return c.at == c.len ? 0 : broken("goes on behind its last record", e);
}

/* Is it of the class that was asked for, of this type and name? */
static bool is_of(const struct dns_record *r, unsigned type, const struct dns_name *name)
{
    return r->class == DNS_IN && r->type == type && dnswire_same_name(&r->owner, name);
}

/* More than half of the numbers there are means that somebody is wrong: not to be kept at all (RFC 2181). */
static void shorten(uint32_t *ttl, uint32_t by)
{
    by = by > INT32_MAX ? 0 : by;
    *ttl = by < *ttl ? by : *ttl;
}

/* What the name is an alias of: 1, and *name is that; 0, it is none. */
static int follow(struct dns_cursor c, size_t answers, struct dns_name *name, uint32_t *ttl, struct pale_err *e)
{
    struct dns_name to;
    struct dns_record r;
    bool found = false;
    for (size_t i = 0; i < answers; i++) {
        dnswire_record(&c, &r);
        if (!is_of(&r, DNS_CNAME, name))
            continue;
        if (found)
            return broken("has two aliases of one name", e);
        struct dns_cursor data = {.message = c.message, .len = r.data + r.data_len, .at = r.data};
        dnswire_name(&data, true, &to);
        if (data.bad || data.at != data.len)
            return broken("has an alias that is no name", e);
        found = true;
        shorten(ttl, r.ttl);
    }
    if (found)
        *name = to;
    return found;
}

static bool has(const struct dns_found *f, const struct address *a)
{
    for (size_t i = 0; i < f->count; i++)
        if (memcmp(&f->address[i], a, sizeof(*a)) == 0)
            return true;
    return false;
}

static int collect(struct dns_cursor c, size_t answers, unsigned type, const struct dns_name *name, struct dns_found *f, struct pale_err *e)
{
    const size_t len = type == DNS_A ? 4 : 16;
    struct dns_record r;
    for (size_t i = 0; i < answers; i++) {
        struct address a = {.family = type == DNS_A ? ADDRESS_V4 : ADDRESS_V6};
        dnswire_record(&c, &r);
        if (!is_of(&r, type, name))
            continue;
        if (r.data_len != len)
            return broken("has an address of the wrong length", e);
        memcpy(a.byte, c.message + r.data, len);
        shorten(&f->ttl, r.ttl);
        if (f->count < DNS_ADDRESSES_MAX && !has(f, &a))
            f->address[f->count++] = a;
    }
    return 0;
}

/* The addresses at the end of the chain that begins with the name asked for. */
static int find(const struct dns_question *q, struct dns_cursor c, size_t answers, struct dns_found *f, struct pale_err *e)
{
    struct dns_name name = q->name;
    size_t links = 0;
    int r = 0;
    f->ttl = INT32_MAX;
    while ((r = follow(c, answers, &name, &f->ttl, e)) == 1)
        if (++links > DNS_ALIASES_MAX)
            return broken("has too long a chain of aliases, or one without an end", e);
    if (r == 0)
        r = collect(c, answers, q->type, &name, f, e);
    if (f->count == 0)
        f->ttl = 0;
    return r;
}

int dnslookup_parse(const struct dns_question *q, const uint8_t *p, size_t n, struct dns_found *ret, struct pale_err *e)
{
    struct dns_cursor c = {.message = p, .len = n};
    struct dns_found f = {0};
    struct dns_head h;
    dnswire_head(&c, &h);
    if (!is_answer_to(q, &h, &c))
        return 0;
    f.result = h.flags & 0xf;
    f.truncated = h.flags & DNS_TRUNCATED;
    /* A server cuts a datagram where it likes, so that only its head is to be believed. */
    int r = f.truncated ? 0 : check_records(c, &h, &f.result, e);
    if (r == 0 && !f.truncated && f.result == DNS_NOERROR)
        r = find(q, c, h.answers, &f, e);
    if (r < 0)
        return r;
    *ret = f;
    return 1;
}
