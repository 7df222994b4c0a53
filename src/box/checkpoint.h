/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints: how far each box's audit log had come, written down in a log of their own.
 *
 * A box's log says by its head file if its end is missing. Whoever cuts back or rewrites both is noticed by the checkpoints, which stand
 * elsewhere, are chained themselves, and outlive the box. They are taken when a box has stopped, and once a day. */
#pragma once

#include "box/audit.h"

/* Takes those that are due: of every log that has grown since. Its bytes are on the disk before. *ret: how many. */
int checkpoint_take(unsigned *ret, struct pale_err *e) MUST_CHECK;

/* The newest of a box, by the number that it keeps when it is renamed (life_born); seq 0 if there is none. */
int checkpoint_find(uint64_t born, struct audit_anchor *ret, struct pale_err *e) MUST_CHECK;
