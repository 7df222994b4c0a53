/* SPDX-License-Identifier: Apache-2.0 */
/* Claims: which host folders live boxes may write, so that no two boxes ever share one (invariant 3).
 *
 * How it works: each keeper whose box may write host folders keeps a file in the user's runtime folder that lists them, locked
 * as long as the keeper lives. A new keeper reads the files of the living under one lock and refuses a folder that is, holds, or
 * lies in one of theirs, by path or by device and inode. A file that nobody holds is a dead keeper's and is removed. */
#pragma once

#include <stddef.h>

#include "base/err.h"

/* Claims the folders for box name; *ret_fd must stay open while the box lives. PALE_DENIED names the box that has one already. */
int claims_take(const char *runtime_dir, const char *id, const char *name, const char *const *paths, size_t count, int *ret_fd,
                struct pale_err *e) MUST_CHECK;

/* Removes the file of a keeper that was killed. The caller holds the box's lock, so that no other is starting. */
void claims_sweep(const char *runtime_dir, const char *id);

/* Gives them up. */
void claims_drop(const char *runtime_dir, const char *id, int *fd);
