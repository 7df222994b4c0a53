/* SPDX-License-Identifier: Apache-2.0 */
/* Freezing a box from inside, where it has no cgroup that could: every process is stopped but init and its runners. */
#pragma once

#include "init/job.h"

/* TO_FREEZE and TO_THAW; false if the message makes no sense. */
bool freezer_message(struct jobs *js, const struct frame *f);

/* Somebody was started while the box is frozen: is to be stopped too. */
void freezer_again(struct jobs *js);

/* Looks whether all stand still, and stops who does not. Returns when it wants to be called again (us), -1 for never. */
int64_t freezer_tick(struct jobs *js);
