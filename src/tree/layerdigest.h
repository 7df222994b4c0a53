/* SPDX-License-Identifier: Apache-2.0 */
/* The digest of a closed layer, and what in it nobody should ever have got into one.
 *
 * How it works: one walk in the order of names. For each entry the SHA-256 takes its kind, its path, its mode, the marks of the overlay,
 * and the target of a link or the size and digest of a file (of its chunks that are not all zeros, so that holes cost nothing); each field
 * has a fixed width or its length before it, so no two layers give the same bytes. Owners, times and other attributes do not count; of what
 * is carried a user's own attributes do. Poison is told as it is met, and the walk goes on. */
#pragma once

#include <signal.h>

#include "base/err.h"
#include "base/sha256.h"
#include "tree/carriage.h"
#include "tree/leaf.h"

struct layerdigest {
    bool allow_setid;                                                /* set-id bits are no poison: an image has some */
    const volatile sig_atomic_t *stop;                               /* set once somebody interrupts; or NULL */
    struct carriage *carry;                                          /* digest what is carried of it; NULL: all that is there */
    void (*poison)(void *arg, const char *path, const char *reason); /* may be NULL; path is hostile bytes */
    void *arg;
    /* How it went. */
    uint8_t digest[SHA256_BYTES];
    uint64_t files, entries, bytes; /* bytes as the files say, holes too; UINT64_MAX if they are more than that */
    unsigned poisoned;
    char first[300]; /* what of it was met first, and why, to be shown; "": nothing */
};

/* An entry that cannot be read is an error: a digest covers everything. The layer must not change meanwhile. */
int layerdigest_run(struct layerdigest *d, int layer_fd, struct pale_err *e) MUST_CHECK;
