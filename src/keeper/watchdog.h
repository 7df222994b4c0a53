/* SPDX-License-Identifier: Apache-2.0 */
/* The watchdog: holds the default memory limit where no cgroup can. It looks a few times a second, so it is for defaults that
 * nobody asked for; receipts and `pale inspect` say that it is in use. */
#pragma once

#include "keeper/keeper.h"

void watchdog_start(struct keeper *k);

/* A command starts: the box is looked at again while anything runs. */
void watchdog_wake(struct keeper *k);
