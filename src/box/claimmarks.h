/* SPDX-License-Identifier: Apache-2.0 */
/* Marks of claims, which the kernel keeps on the folders themselves and drops when their holder dies.
 *
 * How it works: a mark is a read lock (of an open file description) on one byte of a folder, far beyond any file's end: one byte says "a
 * box may write this folder", the next "… a folder beneath it". A folder's bytes do not exist, nobody can lock one for writing, and flock
 * is another kind of lock: so marks disturb nobody. Whoever can read the folder can ask about them, from whatever runtime folder, user
 * or mount, and after whatever rename. A file that a box may write has its mark on the folder it is in: programs lock whole files. */
#pragma once

#include "base/err.h"
#include "box/ancestors.h"

/* Sets the marks of all in the set, on its own descriptors, which must stay open for as long as they are to hold. */
int claimmarks_set(const struct ancestors *s, struct pale_err *e) MUST_CHECK;

/* What somebody else has marked so that it excludes ours, or NULL. *ret_pid: who, where that is told; else -1. */
const struct ancestor *claimmarks_find(const struct ancestors *s, int *ret_pid);

/* How many folders of this host are marked as writable in some box; -1 if that cannot be found out. */
long claimmarks_count(void);
