/* SPDX-License-Identifier: Apache-2.0 */
/* A tree that has no extended attributes by which anything could be steered: what was unpacked in a box, before it is given any. */
#pragma once

#include <signal.h>

#include "base/err.h"

/* Walks all of it. PALE_CORRUPT names the first entry that has an attribute of an overlay's, also one that it keeps for another in a box,
 * or one that gives power. stop: set once somebody interrupts; or NULL. */
int bare_check(int root_fd, const volatile sig_atomic_t *stop, struct pale_err *e) MUST_CHECK;
