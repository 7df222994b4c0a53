/* SPDX-License-Identifier: Apache-2.0 */
/* Claims: which host folders live boxes may write, so that no two boxes ever share one (invariant 3).
 *
 * How it works: each keeper whose box may write host folders keeps a file in the user's runtime folder that lists them, locked
 * as long as the keeper lives. A new keeper reads the files of the living under one lock and refuses a folder that is, holds, or
 * lies in one of theirs, by path or by device and inode. A file that nobody holds is a dead keeper's and is removed.
 *
 * Most boxes write only their own folder among the user's boxes, and those are never inside each other. So the files of wide claims,
 * all others, stand in a folder of their own: a narrow claim is compared with them alone, and the thousandth box is made as fast as
 * the first. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct claim {
    const char *id, *name; /* of the box */
    const char *const *paths;
    size_t count;
    bool wide; /* not only the box's own folder among the user's boxes */
};

/* Claims the folders; *ret_fd must stay open while the box lives. PALE_DENIED names the box that has one already. */
int claims_take(const char *runtime_dir, const struct claim *c, int *ret_fd, struct pale_err *e) MUST_CHECK;

/* Removes the file of a keeper that was killed. The caller holds the box's lock, so that no other is starting. */
void claims_sweep(const char *runtime_dir, const char *id);

/* Is there a file of that box? A keeper that ends in its order removes it last but one, after its cgroup. */
bool claims_are_left(const char *runtime_dir, const char *id);

/* Gives them up. */
void claims_drop(const char *runtime_dir, const char *id, int *fd);
