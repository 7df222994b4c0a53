/* SPDX-License-Identifier: Apache-2.0 */
/* Claims: which host folders live boxes may write, so that no two boxes ever share one (invariant 3).
 *
 * How it works: each keeper whose box may write host folders finds all folders that hold them, by device and inode and through every mount
 * (box/ancestors.h). It keeps both in a file of its runtime folder, locked as long as it lives, and marks them in the kernel
 * (box/claimmarks.h). Whoever starts marks first and looks then, so that of two at once none can miss the other. A folder is refused that
 * is, holds, or lies in one of somebody else's. The files name the box and hold what the marks cannot: folders that may not be read. The
 * marks hold across runtime folders, state folders and users. A folder that was moved after it was claimed has other ancestors now: where
 * it is its keeper is asked (box/claimplaces.h), which marks what holds it now before it answers. A file that nobody holds is a dead
 * keeper's and is removed.
 *
 * Most boxes write only their own folder among the user's boxes, and those are never inside each other. So the files of wide claims,
 * all others, stand in a folder of their own: a narrow claim is compared with them alone, and the thousandth box is made as fast as
 * the first. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "box/ancestors.h"

struct claim {
    const char *id, *name; /* of the box */
    const char *data;      /* its own folder among the user's boxes, or NULL */
    const char *const *paths;
    size_t count;
};

/* What a keeper holds of its claims. */
struct claims {
    int record_fd, places_fd; /* places_fd: readable when somebody asks (claimplaces_answer); -1: nobody will */
    struct ancestors folders;
};
#define CLAIMS_NONE                                                                                                                        \
    {                                                                                                                                      \
        .record_fd = -1, .places_fd = -1                                                                                                   \
    }

/* Claims the folders; *ret must be kept while the box lives. PALE_DENIED names the box that has one already. */
int claims_take(const char *runtime_dir, const struct claim *c, struct claims *ret, struct pale_err *e) MUST_CHECK;

/* Marks what holds the folders now: they may have been moved or deleted. In doubt what was marked stays so. */
void claims_renew(struct claims *held);

/* Removes the files of a keeper that was killed. The caller holds the box's lock, so that no other is starting. */
void claims_sweep(const char *runtime_dir, const char *id);

/* Is there a file of that box? A keeper that ends in its order removes it last but one, after its cgroup. */
bool claims_are_left(const char *runtime_dir, const char *id);

/* Gives them up. */
void claims_drop(const char *runtime_dir, const char *id, struct claims *held);
