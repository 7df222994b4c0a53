/* SPDX-License-Identifier: Apache-2.0 */
/* The probe: tries from inside, as a command would, what the box must refuse, and prints what happened. */
#pragma once

#include "wire/message.h"

/* probe FACTS: one line "name<TAB>answer" per attempt on standard output; the keeper compares with what it expects. */
int probe_run(const struct msg_exec *m);
