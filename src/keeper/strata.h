/* SPDX-License-Identifier: Apache-2.0 */
/* Strata: the layers that a box's wall is built of, found when the box starts. */
#pragma once

#include "base/limits.h"
#include "keeper/keeper.h"

struct strata {
    char *text;
    const char **paths; /* of closed layers, lowest first */
    size_t count;
    size_t project_from; /* how many of the lowest do not count for the project */
    char open[PATH_BYTES_MAX];
    char image[PATH_BYTES_MAX]; /* the root of its image; "": it has none */
};

void strata_done(struct strata *s);
#define own_strata CLEANUP(strata_done) struct strata

/* Finds the image, which is held while k->image_lock is open, and the layers of a box whose writes are on the disk, and makes the open one
 * ready; otherwise there are none. list: the list of layers that is to be; NULL: the one there is. */
int strata_find(struct keeper *k, const struct buf *list, struct strata *ret, struct pale_err *e) MUST_CHECK;
