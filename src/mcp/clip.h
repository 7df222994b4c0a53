/* SPDX-License-Identifier: Apache-2.0 */
/* Output for a model: its beginning and its end, without what only a terminal understands.
 *
 * Escape sequences and control characters are left out, a carriage return becomes a new line. What was left out in the middle is
 * counted, and where it begins in the bytes as they came. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct clip {
    struct buf head;
    uint8_t *tail; /* a ring */
    size_t tail_max, tail_at, tail_len;
    uint64_t raw;      /* bytes that came */
    uint64_t raw_head; /* of them until the head was full */
    uint64_t lost;     /* bytes in the middle that are kept no longer */
    uint8_t state;     /* of an escape sequence */
    bool cr;
    uint8_t last; /* byte that was kept */
};

/* tail_max 0: only the beginning is kept. False: no memory. */
bool clip_init(struct clip *c, size_t head_max, size_t tail_max);
void clip_done(struct clip *c);
void clip_add(struct clip *c, const void *p, size_t n);

/* The head, then `gap` if something is missing, then the tail. */
void clip_write(const struct clip *c, const char *gap, struct buf *ret);

/* Is the head full? */
bool clip_is_full(const struct clip *c);
