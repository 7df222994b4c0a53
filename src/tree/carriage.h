/* SPDX-License-Identifier: Apache-2.0 */
/* What of a layer goes into an archive, and in which form, so that a tree that was carried elsewhere has the digest it had here.
 *
 * Pipes and sockets stay: they mean something only to programs that run. A whiteout is one, however the kernel wrote it down, and where
 * nothing lies below it is nothing. Of modes the permissions stay, and of folders the sticky bit; a setgid folder is what a project of the
 * host's has, and no box can make. */
#pragma once

#include "tree/descent.h"

struct carriage {
    bool lowest;   /* nothing lies below: neither whiteouts nor folders that hide count */
    uint64_t left; /* pipes and sockets, counted */
};

/* Makes of the step that the walk is at what is carried; false if it is not. The walk reads marks. */
bool carriage_step(struct carriage *c, const struct descent *d, struct descent_step *s);
