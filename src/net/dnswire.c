/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the cursor over DNS messages. Pure.
 *
 * How it works: the bytes are hostile. A name is copied label by label, at most 255 bytes in all; a pointer must lead to before the place
 * from which this part of the name was read, so that loops do not exist, and there are no more jumps than a name can have labels. */
#include "net/dnswire.h"

#include <string.h>

#define JUMPS_MAX 127 /* as many as a name has labels: a pointer to a pointer saves nobody a byte */

/* n bytes at the cursor, which moves behind them; NULL if they are not there. */
static const uint8_t *take(struct dns_cursor *c, size_t n)
{
    if (c->bad || n > c->len - c->at) {
        c->bad = true;
        return NULL;
    }
    c->at += n;
    return c->message + c->at - n;
}

uint16_t dnswire_u16(struct dns_cursor *c)
{
    const uint8_t *p = take(c, 2);
    return p ? (uint16_t)(p[0] << 8 | p[1]) : 0;
}

uint32_t dnswire_u32(struct dns_cursor *c)
{
    const uint8_t *p = take(c, 4);
    return p ? (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3] : 0;
}

void dnswire_skip(struct dns_cursor *c, size_t n)
{
    (void)take(c, n);
}

void dnswire_head(struct dns_cursor *c, struct dns_head *ret)
{
    uint16_t *const fields[] = {&ret->id, &ret->flags, &ret->questions, &ret->answers, &ret->authorities, &ret->additionals};
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        *fields[i] = dnswire_u16(c);
}

/* Where the pointer at the cursor leads; it must be before limit. */
static size_t take_pointer(struct dns_cursor *c, size_t limit)
{
    size_t to = dnswire_u16(c) & 0x3fffu;
    if (to < DNS_HEAD_BYTES || to >= limit)
        c->bad = true;
    return to;
}

void dnswire_name(struct dns_cursor *c, bool pointers, struct dns_name *ret)
{
    struct dns_cursor part = *c; /* moves through the parts of the name; c stays where the first one ends */
    size_t start = c->at, jumps = 0;
    ret->len = 0;
    for (;;) {
        const uint8_t *p = take(&part, 1);
        size_t n = p ? *p : 0;
        if (n >= 0xc0 && pointers) {
            part.at--;
            size_t to = take_pointer(&part, start);
            if (jumps++ == 0)
                c->at = part.at;
            part.bad = part.bad || jumps > JUMPS_MAX;
            part.at = start = part.bad ? part.at : to;
            continue;
        }
        if (!p || n > 63 || ret->len + 1 + n > DNS_NAME_BYTES || !take(&part, n)) {
            c->bad = true;
            ret->len = 0;
            return;
        }
        memcpy(ret->byte + ret->len, p, n + 1);
        ret->len += n + 1;
        if (n == 0)
            break;
    }
    if (jumps == 0)
        c->at = part.at;
}

void dnswire_record(struct dns_cursor *c, struct dns_record *ret)
{
    dnswire_name(c, true, &ret->owner);
    ret->type = dnswire_u16(c);
    ret->class = dnswire_u16(c);
    ret->ttl = dnswire_u32(c);
    ret->data_len = dnswire_u16(c);
    ret->data = c->at;
    dnswire_skip(c, ret->data_len);
}

static uint8_t lower(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? (uint8_t)(c - 'A' + 'a') : c;
}

bool dnswire_same_name(const struct dns_name *a, const struct dns_name *b)
{
    if (a->len != b->len)
        return false;
    /* Lengths of labels are below 'A', so that they compare as they are. */
    for (size_t i = 0; i < a->len; i++)
        if (lower(a->byte[i]) != lower(b->byte[i]))
            return false;
    return true;
}

size_t dnswire_text(const struct dns_name *n, char ret[DNS_NAME_BYTES])
{
    size_t len = 0;
    for (size_t at = 0; at < n->len && n->byte[at]; at += 1u + n->byte[at]) {
        if (len)
            ret[len++] = '.';
        memcpy(ret + len, n->byte + at + 1, n->byte[at]);
        len += n->byte[at];
    }
    ret[len] = 0;
    return len;
}

enum hostname_trouble dnswire_host(const struct dns_name *n, struct hostname *ret)
{
    char text[DNS_NAME_BYTES];
    for (size_t at = 0; at < n->len && n->byte[at]; at += 1u + n->byte[at])
        if (memchr(n->byte + at + 1, '.', n->byte[at]))
            return HOSTNAME_BYTE;
    return hostname_canon(text, dnswire_text(n, text), true, ret);
}

void dnswire_from_host(const struct hostname *h, struct dns_name *ret)
{
    size_t from = 0;
    for (size_t i = 0; i <= h->len; i++) {
        if (i < h->len && h->text[i] != '.')
            continue;
        ret->byte[from] = (uint8_t)(i - from);
        memcpy(ret->byte + from + 1, h->text + from, i - from);
        from = i + 1;
    }
    ret->byte[from] = 0;
    ret->len = from + 1;
}

void dnswire_put(struct dns_writer *w, const void *p, size_t n)
{
    if (w->full || n > w->cap - w->at) {
        w->full = true;
        return;
    }
    memcpy(w->message + w->at, p, n);
    w->at += n;
}

void dnswire_put_u16(struct dns_writer *w, unsigned v)
{
    dnswire_put(w, (const uint8_t[]){(uint8_t)(v >> 8), (uint8_t)v}, 2);
}

void dnswire_put_u32(struct dns_writer *w, uint32_t v)
{
    dnswire_put_u16(w, v >> 16);
    dnswire_put_u16(w, v & 0xffff);
}

void dnswire_put_head(struct dns_writer *w, const struct dns_head *h)
{
    const uint16_t fields[] = {h->id, h->flags, h->questions, h->answers, h->authorities, h->additionals};
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        dnswire_put_u16(w, fields[i]);
}
