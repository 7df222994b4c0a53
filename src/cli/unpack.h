/* SPDX-License-Identifier: Apache-2.0 */
/* Unpacking a stranger's archive: a box of its own, which has one folder of ours to write to, and in it pale-init's `layer`
 * (init/layer.h). No byte of the archive is looked at outside it. */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "image/left.h"

struct unpack {
    const char *folder; /* real path */
    const char *pass;   /* "whole", "hide", "lay" or "cargo" */
    int in_fd;          /* the archive */
    bool shows_progress;
    const char *label; /* by which the box's log has it; NULL: an image */
};

/* Returns once the box is gone. What was left out is added to left. PALE_GONE if somebody interrupted it. */
int unpack_run(const struct unpack *u, struct left *left, struct pale_err *e) MUST_CHECK;
