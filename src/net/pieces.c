/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the moving of bytes in pieces. */
#include "net/pieces.h"

#include <string.h>

static size_t least(uint64_t a, size_t b)
{
    return a < b ? (size_t)a : b;
}

const uint8_t *pieces_take(struct pieces *p, uint64_t n, size_t *ret_n)
{
    const uint8_t *at = p->in_len ? p->in + p->used : NULL;
    *ret_n = least(n, p->in_len - p->used);
    p->used += *ret_n;
    return at;
}

bool pieces_collect(struct pieces *p, uint8_t *part, size_t *filled, size_t want)
{
    size_t n;
    const uint8_t *at = pieces_take(p, want - *filled, &n);
    if (n)
        memcpy(part + *filled, at, n);
    *filled += n;
    if (*filled < want)
        return false;
    *filled = 0;
    return true;
}

size_t pieces_give(struct pieces *p, const void *bytes, uint64_t n)
{
    size_t now = least(n, p->room - p->made);
    if (now && bytes)
        memcpy(p->out + p->made, bytes, now);
    else if (now)
        memset(p->out + p->made, 0, now);
    p->made += now;
    return now;
}

size_t pieces_pass(struct pieces *p, uint64_t n)
{
    size_t now;
    const uint8_t *at = pieces_take(p, least(n, p->room - p->made), &now);
    return now ? pieces_give(p, at, now) : 0;
}
