/* SPDX-License-Identifier: Apache-2.0 */
/* Owns clips. */
#include "mcp/clip.h"

#include <stdlib.h>
#include <string.h>

enum { PLAIN, ESCAPE, SEQUENCE, STRING, STRING_ESCAPE };

#define ESC 0x1b
#define BEL 0x07

bool clip_init(struct clip *c, size_t head_max, size_t tail_max)
{
    *c = (struct clip){.tail_max = tail_max};
    buf_init(&c->head, head_max);
    c->tail = tail_max ? malloc(tail_max) : NULL;
    return !tail_max || c->tail;
}

void clip_done(struct clip *c)
{
    buf_done(&c->head);
    free(c->tail);
    *c = (struct clip){0};
}

static void keep(struct clip *c, uint8_t byte)
{
    /* Control characters of the upper half, whatever stood between their bytes: some terminals take U+009B for the beginning of a
     * sequence. */
    if (c->last == 0xc2 && byte >= 0x80 && byte < 0xa0)
        return;
    c->last = byte;
    if (c->head.len < c->head.max) {
        buf_add(&c->head, &byte, 1);
        return;
    }
    if (c->tail_len == c->tail_max)
        c->lost++;
    if (!c->tail_max)
        return;
    c->tail[(c->tail_at + c->tail_len) % c->tail_max] = byte;
    if (c->tail_len < c->tail_max)
        c->tail_len++;
    else
        c->tail_at = (c->tail_at + 1) % c->tail_max;
}

static void plain(struct clip *c, uint8_t byte)
{
    bool after_cr = c->cr;
    c->cr = byte == '\r';
    if (byte == ESC)
        c->state = ESCAPE;
    else if (byte == '\r')
        keep(c, '\n');
    else if (byte == '\n' && after_cr)
        return;
    else if (byte >= 0x20 ? byte != 0x7f : byte == '\n' || byte == '\t')
        keep(c, byte);
}

static void step(struct clip *c, uint8_t byte)
{
    switch (c->state) {
    case ESCAPE: /* [ begins a sequence; ] P X ^ _ a string that has an end of its own; else one more byte, or a few and one */
        if (byte == '[')
            c->state = SEQUENCE;
        else if (strchr("]PX^_", byte) && byte)
            c->state = STRING;
        else if (byte < 0x20 || byte > 0x2f)
            c->state = PLAIN;
        return;
    case SEQUENCE:
        if (byte >= 0x40 && byte <= 0x7e)
            c->state = PLAIN;
        else if (byte < 0x20 || byte > 0x7e) { /* none of those after all */
            c->state = PLAIN;
            plain(c, byte);
        }
        return;
    case STRING:
        if (byte == BEL || byte == '\n') /* a line end is none of its: somebody forgot the end */
            c->state = PLAIN;
        else if (byte == ESC)
            c->state = STRING_ESCAPE;
        return;
    case STRING_ESCAPE:
        c->state = byte == '\\' ? PLAIN : STRING;
        return;
    default:
        plain(c, byte);
    }
}

void clip_add(struct clip *c, const void *p, size_t n)
{
    const uint8_t *at = p;
    for (size_t i = 0; i < n; i++) {
        step(c, at[i]);
        c->raw++;
        if (c->head.len < c->head.max)
            c->raw_head = c->raw;
    }
}

bool clip_is_full(const struct clip *c)
{
    return c->head.len == c->head.max;
}

void clip_write(const struct clip *c, const char *gap, struct buf *ret)
{
    buf_add(ret, c->head.data ? c->head.data : (const uint8_t *)"", c->head.len);
    if (c->lost > 0)
        buf_add_text(ret, gap);
    size_t first = c->tail_max - c->tail_at < c->tail_len ? c->tail_max - c->tail_at : c->tail_len;
    if (c->tail_len > 0) {
        buf_add(ret, c->tail + c->tail_at, first);
        buf_add(ret, c->tail, c->tail_len - first);
    }
}
