/* SPDX-License-Identifier: Apache-2.0 */
/* Records: a run of fields, each a tag byte, a little-endian length and its bytes. Every message between our
 * processes is one.
 *
 * How it works: a reader walks the fields in order and refuses whatever it does not know: an unknown tag, a length
 * past the end, a number of the wrong width, a text with a NUL. The writer appends into memory it was given and never
 * allocates, so pale-init can use both. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RECORD_FIELD_HEAD 5u

struct record_writer {
    uint8_t *at;
    size_t len, cap;
    bool full; /* a field did not fit; the record must not be sent */
};

void record_start(struct record_writer *w, void *mem, size_t cap);
void record_put(struct record_writer *w, uint8_t tag, const void *p, size_t n);
void record_put_u64(struct record_writer *w, uint8_t tag, uint64_t v);

struct record_field {
    uint8_t tag;
    const uint8_t *data;
    size_t len;
};

struct record_reader {
    const uint8_t *at, *end;
};

void record_open(struct record_reader *r, const void *p, size_t n);

/* 1 and the next field, 0 at the clean end, -1 where the bytes are no record. */
int record_next(struct record_reader *r, struct record_field *ret_field);

/* A field as a number; false if the bytes do not have that shape. */
bool record_u64(const struct record_field *f, uint64_t *ret);
