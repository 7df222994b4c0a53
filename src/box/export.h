/* SPDX-License-Identifier: Apache-2.0 */
/* An export: a box's own files and what is to be known of it, as one archive (net/cargo.h). Blocks.
 *
 * How it works: the box is closed at a point as for a fork, so it is paused or copied as a snapshot is, and goes on at once. What lies
 * closed does not change; the layers of the point are welded into one if there are several, digested, and then written. The box's files
 * are hostile and only looked at beneath descriptors. Who is killed over it leaves a folder that the next `gc` takes away. */
#pragma once

#include <signal.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/own.h"
#include "box/waybill.h"

struct export_order {
    const char *at; /* the snapshot; NULL: as the box is now */
    const char *caller;
    void (*progress)(void *arg, uint64_t entries, uint64_t bytes); /* while it is written; or NULL */
    void *arg;
    const volatile sig_atomic_t *stop; /* or NULL */
};

struct export
{
    struct place place;
    struct policy policy;
    struct waybill bill;
    struct buf text; /* of the bill */
    int hold_fd;     /* nobody removes layers meanwhile */
    int part_fd[PART_COUNT];
    char made[LAYER_ID_LEN + 1]; /* a layer that is only there for this; "": none */
};

/* Closes the box at the point and finds out what there is to write. PALE_CORRUPT if it holds what no box can make. */
int export_open(struct export *x, const struct place *p, const struct export_order *o, struct pale_err *e) MUST_CHECK;
void export_close(struct export *x);
#define own_export CLEANUP(export_close) struct export
#define EXPORT_NONE                                                                                                                        \
    {                                                                                                                                      \
        .hold_fd = -1, .part_fd = { -1, -1, -1, -1 }                                                                                       \
    }

/* Writes the archive, uncompressed. */
int export_write(struct export *x, const struct export_order *o, int out_fd, struct pale_err *e) MUST_CHECK;
