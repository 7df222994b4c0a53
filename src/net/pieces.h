/* SPDX-License-Identifier: Apache-2.0 */
/* One call of something that makes bytes of bytes, piece by piece: what it is given, and what came of it.
 *
 * Pure. Whoever uses it keeps a part that is not whole yet, or not given yet, in arrays of its own. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pieces {
    const uint8_t *in;
    size_t in_len;
    bool last; /* nothing comes after these bytes */
    uint8_t *out;
    size_t room;
    size_t used, made; /* how much of in, how much in out */
};

/* At most n bytes of what is there; they are used then. */
const uint8_t *pieces_take(struct pieces *p, uint64_t n, size_t *ret_n);

/* Collects want bytes in part, of which *filled are there; true, and *filled is 0, when they all are. */
bool pieces_collect(struct pieces *p, uint8_t *part, size_t *filled, size_t want);

/* Gives bytes as far as there is room; returns how many. NULL stands for zeros. */
size_t pieces_give(struct pieces *p, const void *bytes, uint64_t n);

/* Hands up to n bytes from in to out, as they are; returns how many. */
size_t pieces_pass(struct pieces *p, uint64_t n);
