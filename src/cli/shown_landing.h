/* SPDX-License-Identifier: Apache-2.0 */
/* What became of files that were to land in a project, for people, here or as a daemon tells it. */
#pragma once

#include <stdbool.h>

#include "tree/landing.h"

struct shown_landing {
    const char *path;                      /* hostile bytes */
    const char *result, *guarded, *reason; /* "" if there is none */
};

/* A line; none for what is there already. */
void shown_landing_one(const struct shown_landing *s);

/* The sum, and what is to be done next. Returns the exit status: 1 if something was left. */
int shown_landing_sum(const uint64_t count[LANDING_RESULT_COUNT], bool dry);
