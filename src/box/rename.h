/* SPDX-License-Identifier: Apache-2.0 */
/* Another name for a stopped box: its data folder gets it. Its id stays, and with that its policy, log, layers and tokens. Whoever is
 * killed over it leaves a box that has either the old name or the new. */
#pragma once

#include "base/err.h"
#include "box/place.h"

/* PALE_BUSY if the box runs, PALE_EXISTS if the name is taken. ret: the box under its new name. */
int rename_box(const struct place *p, const char *name, const char *caller, struct place *ret, struct pale_err *e) MUST_CHECK;

/* Ends what somebody was killed over who made or renamed the box with this id. state: its state folder, open. The caller has the lock of
 * the box, or of the folder of one that has none yet. */
int rename_settle(const char *state_dir, const char *id, int state, struct pale_err *e) MUST_CHECK;
