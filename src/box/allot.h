/* SPDX-License-Identifier: Apache-2.0 */
/* The allotment of a box: how much of a disk its layers may take, held by a project quota of the kernel's.
 *
 * How it works: the folder that a box's own layers are made in is given a project of its own, with a limit, before anything is in it, and
 * the kernel hands the project on to all that is made below. Nothing else remembers the project: the mark is on the folder that it is
 * about. A closed layer goes on counting wherever it is moved to. A project that has a limit and no files is nobody's. */
#pragma once

#include "base/err.h"
#include "policy/policy.h"

/* Does the policy limit what a box that has a name writes to the disk? */
bool allot_is_wanted(const struct policy *p);

/* What a box with this many bytes may have of files: each takes some of the disk that counts as no byte. */
uint64_t allot_files(uint64_t bytes);

/* Sees to it that the folder of a box's layers, which is open as fd, has its project and that project the policy's limit. If it has none
 * yet it must be empty. *ret: the project; 0 if the policy wants no limit (one that it had is lifted), or has one that nobody asked for and
 * that cannot be held. PALE_UNSUPPORTED, with the remedy, if it cannot be held. */
int allot_give(int fd, const struct policy *p, uint32_t *ret, struct pale_err *e) MUST_CHECK;

/* Gives what is marked so some room beyond its limit, even if it is full: without it a full box could not be started, nor be kept. Only
 * while nothing runs in the box; allot_give takes it back. Nothing to do for a folder of no project of ours. */
int allot_ease(int fd, struct pale_err *e) MUST_CHECK;

/* Fails unless the folder hands on this project; 0: whatever it does. */
int allot_check(int fd, uint32_t project, struct pale_err *e) MUST_CHECK;

/* Makes a folder in the folder of a box's layers that belongs to no project of ours, and opens it: others' layers are linked into it. The
 * box may be full, and run. */
int allot_make_exempt(int fd, const char *name, int *ret, struct pale_err *e) MUST_CHECK;

/* Takes the limits from projects of ours that have no file on the file system of this folder any more. Nothing to do where there are
 * no quotas, or we may not. */
int allot_sweep(const char *folder, struct pale_err *e) MUST_CHECK;
