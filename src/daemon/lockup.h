/* SPDX-License-Identifier: Apache-2.0 */
/* paled gives up what it does not need, before the first byte of a stranger. */
#pragma once

#include "base/err.h"

/* No new privileges, no file but those below the state folder, no program, no network, only the system calls of
 * confine/lists/daemon.def. Then tries to take some of it back, and fails if it can. */
int lockup_self(const char *state_dir, struct pale_err *e) MUST_CHECK;
