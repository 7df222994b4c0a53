/* SPDX-License-Identifier: Apache-2.0 */
/* The quarantine of a box: what appeared in its project and would have been obeyed by the host. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct taking {
    int fd;        /* the folder */
    unsigned kept; /* things in it; the next one's number is one more */
};

/* Finds out how much is in it. */
int taking_open(struct taking *t, int fd, struct pale_err *e) MUST_CHECK;

/* Is there room for one more? What comes after is removed, not kept. */
bool taking_has_room(const struct taking *t);

/* Takes name out of the folder dirfd, whatever it is, under the number kept + 1; path is written beside it. Nothing is followed. Succeeds
 * if it is gone by itself. *ret_kept: it is in the quarantine now. */
int taking_take(struct taking *t, int dirfd, const char *name, const char *path, bool *ret_kept, struct pale_err *e) MUST_CHECK;
