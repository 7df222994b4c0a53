/* SPDX-License-Identifier: Apache-2.0 */
/* A stream that may be compressed, uncompressed by a program of the box: gzip, xz or zstd. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

#define INFLATE_PIECE 65536u

struct inflate {
    int fd;              /* where plain bytes come from */
    const char *program; /* that makes them; NULL: nobody has to */
    pid_t pid, pump;
    size_t at, len; /* of piece: taken, and there */
    uint64_t *came; /* bytes of the stream as it comes, shared with who hands them on; NULL: nobody counts */
    uint8_t piece[INFLATE_PIECE];
};

/* Looks at the first bytes of a descriptor and starts what they need. */
int inflate_open(struct inflate *f, int fd, struct pale_err *e) MUST_CHECK;

/* How many bytes of the stream have come so far, at least; UINT64_MAX if it is not compressed. */
uint64_t inflate_came(const struct inflate *f);

/* The next bytes, up to n, where they stand; 0 at the end. -1 with errno. */
ssize_t inflate_take(struct inflate *f, size_t n, const uint8_t **ret);

/* After the end: did the program find everything right? */
int inflate_close(struct inflate *f, struct pale_err *e) MUST_CHECK;
