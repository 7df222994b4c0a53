/* SPDX-License-Identifier: Apache-2.0 */
/* The chunked coding of HTTP bodies, read piece by piece.
 *
 * Strict: sizes are at most eight hex digits, without extensions; every line ends with CR LF; there are no trailers. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum chunks_state {
    CHUNKS_SIZE,
    CHUNKS_SIZE_END,
    CHUNKS_DATA,
    CHUNKS_DATA_CR,
    CHUNKS_DATA_LF,
    CHUNKS_LAST_CR,
    CHUNKS_LAST_LF,
    CHUNKS_DONE
};

/* All zero at the beginning of a body. */
struct chunks {
    enum chunks_state state;
    unsigned digits;
    uint64_t left; /* of this chunk */
};

/* Takes from p what it can: *ret_used bytes, of which the last *ret_data are data of the body, at *ret_at. 1: the body has ended
 * there; 0: it goes on, call again with what is left or comes; -1: this is no chunked body. */
int chunks_take(struct chunks *c, const char *p, size_t n, size_t *ret_used, const char **ret_at, size_t *ret_data);

/* The line before a chunk of n bytes, at least CHUNKS_HEAD_MAX long; returns its length. After the data follows CR LF. */
#define CHUNKS_HEAD_MAX 20
size_t chunks_put_head(char *ret, size_t n);
