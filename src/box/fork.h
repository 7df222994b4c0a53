/* SPDX-License-Identifier: Apache-2.0 */
/* Forks: boxes that begin where another is or was. */
#pragma once

#include "base/err.h"
#include "box/place.h"

#define FORK_MAX 1000 /* at once */

struct fork_order {
    const char *name; /* of the new box; with more than one NAME-1, NAME-2 … */
    const char *at;   /* the snapshot; NULL: as the box is now, which is closed for it */
    unsigned count;
    const char *caller;
    /* In whose folder they go: NULL: that of the box. Else it is a box of a project that is a copy, and the fork's project is that one. */
    const struct place *beside;
};

/* Makes them on the layers of p, with a policy of the same text, but that a live project becomes one for review: no two boxes write in
 * one folder. Name, id, host name, machine id, tokens and audit log are their own; the first record of each log tells where it comes from.
 * Either all are made or none. ret: room for count. */
int fork_make(const struct place *p, const struct fork_order *o, struct place *ret, struct pale_err *e) MUST_CHECK;
