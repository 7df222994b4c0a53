/* SPDX-License-Identifier: Apache-2.0 */
/* A walk down one tree that a box wrote, step by step: sorted, without recursion, by descriptors.
 *
 * Each folder is opened anew from the root by its path, so depth costs no descriptors; names on the way down come out of one budget. What
 * is gone by the time it is looked at is passed over, and what cannot be understood is a step with its trouble: whoever walks decides. */
#pragma once

#include "base/limits.h"
#include "tree/leaf.h"
#include "tree/roster.h"

struct descent_frame;

struct descent {
    int root_fd;
    bool marks; /* read what overlayfs wrote down */
    size_t budget;
    struct descent_frame *top;
    struct pale_err why;
    int fd; /* of the last step */
    bool begun;
    char path[PATH_BYTES_MAX];
};

struct descent_step {
    const char *path; /* from the root; until the next step */
    int fd;           /* O_PATH, of what stands there; -1 when a folder is left, and with trouble */
    struct leaf leaf;
    bool leaving;                   /* the folder was told before, and so was all that is in it */
    const struct pale_err *trouble; /* the rest means nothing then; what lies below is not walked */
};

void descent_init(struct descent *d, int root_fd, bool marks);
void descent_done(struct descent *d);
#define own_descent CLEANUP(descent_done) struct descent

/* Lists the root, so that descent_has knows it. The first step does so of itself. */
int descent_begin(struct descent *d, struct pale_err *e) MUST_CHECK;

/* 1 with the next step, 0 at the end. The root itself is no step. Errors are those of memory, or of the root. */
int descent_next(struct descent *d, struct descent_step *ret, struct pale_err *e) MUST_CHECK;

/* The folder that the walk is in: after a step of a folder that one, after any other the one that holds it. */
const struct leaf *descent_folder(const struct descent *d);

/* Does the folder that was just entered hold this name? Before the first step: the root. */
bool descent_has(const struct descent *d, const char *name);
