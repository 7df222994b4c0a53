/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the growing byte buffer. */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void buf_init(struct buf *b, size_t max)
{
    *b = (struct buf){.max = max};
}

void buf_init_lent(struct buf *b, size_t max, void *mem, size_t cap)
{
    *b = (struct buf){.data = mem, .cap = cap < max ? cap : max, .max = max, .lent = true};
}

void buf_done(struct buf *b)
{
    if (!b->lent)
        free(b->data);
    *b = (struct buf){0};
}

void buf_clear(struct buf *b)
{
    b->len = 0;
    b->failed = false;
}

bool buf_reserve(struct buf *b, size_t more)
{
    if (b->failed)
        return false;
    if (more <= b->cap - b->len)
        return true;
    if (more > b->max - b->len) {
        b->failed = true;
        return false;
    }
    size_t want = b->cap ? b->cap : 256;
    while (want < b->len + more)
        want *= 2;
    if (want > b->max)
        want = b->max;
    uint8_t *p = realloc(b->lent ? NULL : b->data, want);
    if (!p) {
        b->failed = true;
        return false;
    }
    if (b->lent && b->len > 0)
        memcpy(p, b->data, b->len);
    b->lent = false;
    b->data = p;
    b->cap = want;
    return true;
}

void buf_add(struct buf *b, const void *p, size_t n)
{
    if (n == 0 || !buf_reserve(b, n))
        return;
    memcpy(b->data + b->len, p, n);
    b->len += n;
}

void buf_add_text(struct buf *b, const char *s)
{
    buf_add(b, s, strlen(s));
}

void buf_addf(struct buf *b, const char *fmt, ...)
{
    char small[512];
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(small, sizeof(small), fmt, ap);
    va_end(ap);
    if (n < 0) {
        b->failed = true;
    } else if ((size_t)n < sizeof(small)) {
        buf_add(b, small, (size_t)n);
    } else if (buf_reserve(b, (size_t)n + 1)) {
        vsnprintf((char *)b->data + b->len, (size_t)n + 1, fmt, again);
        b->len += (size_t)n;
    }
    va_end(again);
}

void buf_consume(struct buf *b, size_t n)
{
    if (n >= b->len) {
        b->len = 0;
        return;
    }
    memmove(b->data, b->data + n, b->len - n);
    b->len -= n;
}

const char *buf_text(struct buf *b)
{
    bool failed = b->failed;
    b->failed = false;
    bool room = b->cap > b->len || (b->max > b->len && buf_reserve(b, 1));
    b->failed = failed;
    if (!room)
        return "";
    b->data[b->len] = 0;
    return (const char *)b->data;
}
