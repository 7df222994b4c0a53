/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the record encoding. Pure: no I/O, no allocation. */
#include "base/record.h"

#include <string.h>

void record_start(struct record_writer *w, void *mem, size_t cap)
{
    *w = (struct record_writer){.at = mem, .cap = cap};
}

void record_put(struct record_writer *w, uint8_t tag, const void *p, size_t n)
{
    if (w->full || n > UINT32_MAX || w->cap - w->len < RECORD_FIELD_HEAD || w->cap - w->len - RECORD_FIELD_HEAD < n) {
        w->full = true;
        return;
    }
    uint8_t *h = w->at + w->len;
    uint32_t len = (uint32_t)n;
    h[0] = tag;
    for (int i = 0; i < 4; i++)
        h[1 + i] = (uint8_t)(len >> (8 * i));
    if (n)
        memcpy(h + RECORD_FIELD_HEAD, p, n);
    w->len += RECORD_FIELD_HEAD + n;
}

void record_put_u64(struct record_writer *w, uint8_t tag, uint64_t v)
{
    uint8_t b[8];
    for (int i = 0; i < 8; i++)
        b[i] = (uint8_t)(v >> (8 * i));
    record_put(w, tag, b, sizeof(b));
}

void record_open(struct record_reader *r, const void *p, size_t n)
{
    r->at = p;
    r->end = r->at + n;
}

int record_next(struct record_reader *r, struct record_field *ret_field)
{
    size_t left = (size_t)(r->end - r->at);
    if (left == 0)
        return 0;
    if (left < RECORD_FIELD_HEAD)
        return -1;
    uint32_t len = 0;
    for (int i = 0; i < 4; i++)
        len |= (uint32_t)r->at[1 + i] << (8 * i);
    if (len > left - RECORD_FIELD_HEAD)
        return -1;
    *ret_field = (struct record_field){.tag = r->at[0], .data = r->at + RECORD_FIELD_HEAD, .len = len};
    r->at += RECORD_FIELD_HEAD + len;
    return 1;
}

bool record_u64(const struct record_field *f, uint64_t *ret)
{
    if (f->len != 8)
        return false;
    uint64_t v = 0;
    for (int i = 0; i < 8; i++)
        v |= (uint64_t)f->data[i] << (8 * i);
    *ret = v;
    return true;
}
