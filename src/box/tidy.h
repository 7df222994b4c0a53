/* SPDX-License-Identifier: Apache-2.0 */
/* Tidying a box's layers when nobody waits for it: each closed one loses the folders that only the kernel needed, gets its digest and is
 * looked through for what no box can make, and runs of them are welded, so that a chain of any length opens as a few. */
#pragma once

#include "base/err.h"
#include "box/place.h"

struct tidy_result {
    unsigned digests, joins;
    unsigned poisoned; /* layers that will not be used any more */
};

/* Does what there is to do. One process at a time tidies a box; for another there is nothing to do. Who is killed over it leaves the
 * list of layers as it was, and a folder that the next `gc` removes. */
int tidy_box(const struct place *p, struct tidy_result *ret, struct pale_err *e) MUST_CHECK;

/* The same in a process of its own that outlives us, at the lowest priority; at_work: only when there was no change for a while. */
void tidy_behind(const struct place *p, bool at_work);

/* Only the welding, at once: ends whoever is at it behind the scenes, and leaves it to anybody else who is. */
int tidy_join(const struct place *p, struct pale_err *e) MUST_CHECK;

/* While the descriptor is open nobody else tidies the box or removes folders that its list of layers does not name. -1: somebody does, and
 * we were not to wait for him. */
int tidy_hold(const struct place *p, bool wait, int *ret_fd, struct pale_err *e) MUST_CHECK;

/* Ends whoever tidies the box behind the scenes, before it is removed. */
void tidy_stop(const struct place *p);
