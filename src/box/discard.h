/* SPDX-License-Identifier: Apache-2.0 */
/* Throwing away what a box has changed in its project, all of it or at some paths. Blocks.
 *
 * How it works: what the box is until now is closed and kept as a snapshot. For all of it the next layer begins the project again. For
 * some paths one more closed layer does: the project's layers welded into one without those paths (tree/weld.h), so that they are seen
 * as the user has them; nothing is copied, and it costs what the box has changed. Either takes place when the list of layers is replaced;
 * who is killed before leaves the box as it was, and a folder that the next `gc` takes away. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "box/place.h"
#include "box/stack.h"

struct discard {
    const char *const *paths; /* as review_path takes them, with what lies below them */
    size_t path_count;        /* 0: everything */
    const char *cwd;          /* what they are relative to, if it lies in the project; may be NULL */
    bool force;               /* whatever runs in the box is ended first; else PALE_BUSY */
    const char *caller;
    char kept[SNAPSHOT_NAME_MAX + 1]; /* the snapshot of what was thrown away; "": there was nothing */
};

/* PALE_NOT_FOUND names a path at which the box has changed nothing, PALE_BAD_INPUT one that cannot be as it was because what stands above
 * it is no folder any more. */
int discard_run(const struct place *p, struct discard *d, struct pale_err *e) MUST_CHECK;
