/* SPDX-License-Identifier: Apache-2.0 */
/* A tar archive written from layers, in the form of net/cargo.h: what is in a folder before the folder, names sorted, deletions as marks.
 *
 * How it works: the layer is a box's work and hostile, but it is closed and does not change: it is walked beneath its descriptor, and
 * a file gives as many bytes as it was said to have, or the archive is not finished. Files with several names are written once.
 * Nothing is held in memory but the names on the way down and the first names of such files. */
#pragma once

#include <signal.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "tree/carriage.h"
#include "tree/twins.h"

struct tarwriter {
    int out_fd;
    void (*progress)(void *arg, uint64_t entries, uint64_t bytes); /* or NULL */
    void *arg;
    const volatile sig_atomic_t *stop; /* set once somebody interrupts; or NULL */
    /* How far it is. */
    uint64_t entries, bytes;
    struct twins twins; /* of its files with several names, where the first is in the archive */
    char *chunk;
    struct buf attributes, records; /* of an entry, and as an archive has them */
};

/* out_fd stays the caller's. */
int tarwriter_init(struct tarwriter *w, int out_fd, struct pale_err *e) MUST_CHECK;
void tarwriter_done(struct tarwriter *w);
#define own_tarwriter CLEANUP(tarwriter_done) struct tarwriter

/* A member with this content. */
int tarwriter_text(struct tarwriter *w, const char *name, const void *p, size_t n, int64_t mtime, struct pale_err *e) MUST_CHECK;

/* A part: all that is carried of a layer's folder, below that name. PALE_UNSUPPORTED: something has no form in an archive. */
int tarwriter_part(struct tarwriter *w, const char *name, int layer_fd, bool lowest, struct pale_err *e) MUST_CHECK;

int tarwriter_end(struct tarwriter *w, struct pale_err *e) MUST_CHECK;
