/* SPDX-License-Identifier: Apache-2.0 */
/* Capabilities: thrown away, all of them, in every set; one laid aside for a while. */
#pragma once

#include <stdbool.h>

#include "base/err.h"

/* Empties the bounding and ambient sets (needs CAP_SETPCAP in this user namespace). */
int caps_drop_bounding(struct pale_err *e) MUST_CHECK;

/* Empties effective, permitted and inheritable, and fails unless they then read as empty. */
int caps_drop_all(struct pale_err *e) MUST_CHECK;

/* The same, but for one that is kept if it is there; fails if one that was dropped can be taken back. */
int caps_drop_but(int cap, struct pale_err *e) MUST_CHECK;

/* Does this process hold the capability, or any at all (cap < 0)? */
bool caps_has(int cap);

/* Lays a capability aside, or takes it up again; nothing if this process was never permitted it. */
int caps_use(int cap, bool on, struct pale_err *e) MUST_CHECK;

#ifdef PALE_WEAKEN
/* TEST ONLY: keeps what is permitted through changes of user and exec. */
void caps_keep(void);
#endif
