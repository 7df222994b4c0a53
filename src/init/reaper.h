/* SPDX-License-Identifier: Apache-2.0 */
/* Ending commands: with all their descendants, whatever session, group or parent those have given themselves. */
#pragma once

#include "init/job.h"

/* A signal to the command's process group. */
void reaper_signal(struct job *j, int sig);

/* Sets a job's runner and command going again, should another command have stopped them. */
void reaper_wake(const struct job *j);

/* Begins to end a job; the ticks do the rest. */
void reaper_start(struct job *j);

/* Kills under way, fugitives, CPU limits. Returns when it wants to be called again (us), -1 for never. */
int64_t reaper_tick(struct jobs *js);
