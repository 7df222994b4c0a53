/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the chunked coding. */
#include "net/chunks.h"

#include <stdio.h>

#include "net/httphead.h"

#define SIZE_DIGITS_MAX 8u

static int size_byte(struct chunks *c, char b)
{
    int v = http_hex(b);
    if (v >= 0 && c->digits < SIZE_DIGITS_MAX) {
        c->left = c->left * 16 + (uint64_t)v;
        c->digits++;
        return 0;
    }
    if (b != '\r' || c->digits == 0)
        return -1;
    c->state = CHUNKS_SIZE_END;
    return 0;
}

/* One byte that is not data. */
static int mark_byte(struct chunks *c, char b)
{
    static const struct {
        char want;
        enum chunks_state then;
    } rows[] = {
        [CHUNKS_DATA_CR] = {'\r', CHUNKS_DATA_LF},
        [CHUNKS_DATA_LF] = {'\n', CHUNKS_SIZE},
        [CHUNKS_LAST_CR] = {'\r', CHUNKS_LAST_LF},
        [CHUNKS_LAST_LF] = {'\n', CHUNKS_DONE},
    };
    if (c->state == CHUNKS_SIZE)
        return size_byte(c, b);
    if (c->state == CHUNKS_SIZE_END) {
        c->state = c->left ? CHUNKS_DATA : CHUNKS_LAST_CR;
        c->digits = 0;
        return b == '\n' ? 0 : -1;
    }
    if (b != rows[c->state].want)
        return -1;
    c->state = rows[c->state].then;
    return 0;
}

int chunks_take(struct chunks *c, const char *p, size_t n, size_t *ret_used, const char **ret_at, size_t *ret_data)
{
    size_t at = 0;
    *ret_data = 0;
    *ret_at = p;
    while (at < n && c->state != CHUNKS_DONE && c->state != CHUNKS_DATA)
        if (mark_byte(c, p[at++]) < 0)
            return -1;
    if (c->state == CHUNKS_DATA && at < n) {
        size_t data = n - at < c->left ? n - at : (size_t)c->left;
        *ret_at = p + at;
        *ret_data = data;
        at += data;
        c->left -= data;
        if (c->left == 0)
            c->state = CHUNKS_DATA_CR;
    }
    *ret_used = at;
    return c->state == CHUNKS_DONE;
}

size_t chunks_put_head(char *ret, size_t n)
{
    return (size_t)snprintf(ret, CHUNKS_HEAD_MAX, "%zx\r\n", n);
}
