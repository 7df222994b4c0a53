/* SPDX-License-Identifier: Apache-2.0 */
/* What every fuzz target shares: its entry, and the cutting of an input into pieces. A piece that is not there is zero or empty,
 * so that every input means something. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Scaffolding: its branches are no progress, and tracing them costs most of the time. */
#define UNSEEN __attribute__((no_sanitize("coverage")))

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
    const uint8_t *at;
    size_t left;
};

static inline uint8_t input_byte(struct input *in)
{
    return in->left ? (in->left--, *in->at++) : 0;
}

static inline uint64_t input_number(struct input *in, int bytes)
{
    uint64_t v = 0;
    for (int i = 0; i < bytes; i++)
        v |= (uint64_t)input_byte(in) << (8 * i);
    return v;
}

/* The next n bytes, or what there is of them. */
static inline const uint8_t *input_bytes(struct input *in, size_t n, size_t *ret_n)
{
    const uint8_t *p = in->at;
    *ret_n = n < in->left ? n : in->left;
    in->at += *ret_n;
    in->left -= *ret_n;
    return p;
}

/* The bytes up to the next NUL or the end as a text, cut to cap. Returns its length. */
static inline size_t input_text(struct input *in, char *ret, size_t cap)
{
    size_t n = 0;
    while (in->left && *in->at) {
        char c = (char)input_byte(in);
        if (n + 1 < cap)
            ret[n++] = c;
    }
    (void)input_byte(in);
    ret[n] = 0;
    return n;
}
