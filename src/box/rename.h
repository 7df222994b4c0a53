/* SPDX-License-Identifier: Apache-2.0 */
/* Another name for a box.
 *
 * How it works: a box's id is a digest of its data folder's path, so two folders move: the data folder, and the folder of what we trust,
 * which has the id as its name. No call moves both at once. Before the first of them what is meant stands in a file of the state folder
 * (`renaming`), and it goes when all is done; whoever looks for a box first finishes what stands there, or takes it back if it cannot
 * be. So one that was killed in between leaves the box under one of its names, never under both or none, for everybody who looks.
 * One rename goes on at a time: the folder of boxes is locked, alone for a rename, together for making and removing boxes. */
#pragma once

#include "box/place.h"

/* Gives a box that does not run another name, in the same place. Blocks. PALE_BUSY if it runs, PALE_EXISTS if the name is taken. caller:
 * for whom, as the audit shall have it. */
int rename_box(const struct place *p, const char *name, const char *caller, struct place *ret, struct pale_err *e) MUST_CHECK;

/* Finishes a rename that somebody was killed over. Mostly there is none, which one call tells. */
int rename_settle(struct pale_err *e) MUST_CHECK;

/* While *ret_fd is open no box is renamed, and none is half renamed. */
int rename_hold_off(int *ret_fd, struct pale_err *e) MUST_CHECK;

/* While *ret_fd is open nobody makes, removes or renames a box. -1: somebody does, and is not waited for. */
int rename_hold_alone(int *ret_fd, struct pale_err *e) MUST_CHECK;
