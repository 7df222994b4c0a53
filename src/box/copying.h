/* SPDX-License-Identifier: Apache-2.0 */
/* A copy of the parts of a layer.
 *
 * How it works: a process in seclusion makes it, which waits between two passes (tree/layercopy.h). Root's own writing is held to no quota;
 * what is copied for a box is, else the box would have more than its policy says: that process is born without the capability, and cannot
 * take it up. */
#pragma once

#include "base/err.h"
#include "confine/seclusion.h"
#include "tier/wall.h"
#include "tree/layercopy.h"

struct copying {
    int from[PART_COUNT], to[PART_COUNT]; /* folders, ours from the moment they stand here; -1: there is none of this part */
    struct layercopy *part[PART_COUNT];
    struct secluded child;
};

void copying_init(struct copying *c);
void copying_done(struct copying *c);
#define own_copying CLEANUP(copying_done) struct copying

/* Starts the process, for every part that there is something to copy from; each has an empty folder to go to. */
int copying_start(struct copying *c, struct pale_err *e) MUST_CHECK;

/* The first may be left out of a layer that nobody writes to. PALE_LIMIT if there is no room; then remedy says what can be done. */
enum copying_pass { COPYING_FIRST, COPYING_SECOND };
int copying_run(struct copying *c, enum copying_pass pass, const char *remedy, struct pale_err *e) MUST_CHECK;
