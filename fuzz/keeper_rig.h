/* SPDX-License-Identifier: Apache-2.0 */
/* A keeper in a vice: no box, no sockets, no clock of its own. An input is a run of steps in which init and clients send and take
 * bytes, come and go, and time passes. */
#pragma once

#include "input.h"

enum rig_hostile {
    RIG_INIT,  /* init sends any bytes; clients are well-behaved */
    RIG_CLIENT /* clients send any bytes; init is well-behaved but slow */
};

/* Runs one input on a new keeper and checks it after every step; nothing of it is left. */
void rig_run(struct input *in, enum rig_hostile hostile);
