/* SPDX-License-Identifier: Apache-2.0 */
/* A byte buffer that grows up to a maximum it was born with. Failure sticks: a writer checks once, at the end. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/own.h"

struct buf {
    uint8_t *data;
    size_t len, cap, max;
    bool failed; /* an append did not fit or memory ran out; the content is then incomplete */
    bool lent;   /* data is the caller's memory: not freed, and left behind when it grows too small */
};

void buf_init(struct buf *b, size_t max);

/* The same, beginning in memory that the caller lends and that outlives the buffer: what is short then costs no allocation. */
void buf_init_lent(struct buf *b, size_t max, void *mem, size_t cap);
void buf_done(struct buf *b);
#define own_buf CLEANUP(buf_done) struct buf

void buf_clear(struct buf *b);
bool buf_reserve(struct buf *b, size_t more);
void buf_add(struct buf *b, const void *p, size_t n);
void buf_add_text(struct buf *b, const char *s);
void buf_addf(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Drops the first n bytes. */
void buf_consume(struct buf *b, size_t n);

/* The content as a C string; valid until the next change. Empty if nothing was written or memory ran out. */
const char *buf_text(struct buf *b);
