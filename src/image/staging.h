/* SPDX-License-Identifier: Apache-2.0 */
/* Staging: where an image is made before it counts.
 *
 * How it works: a folder of its own beside pale's data folder, on the same file system, so that a finished image gets its place by one
 * rename. Not in the data folder, of which no box is ever given a part: the box that unpacks has the staging's tree for its own. Whoever
 * builds holds a lock on the folder; one that nobody holds is a dead builder's and is swept away. Whatever stands in staging is trusted
 * by nobody. */
#pragma once

#include "base/err.h"
#include "base/limits.h"
#include "base/own.h"
#include "image/store.h"

struct staging {
    const struct store *store;
    char name[32];             /* in the store's staging folder */
    char path[PATH_BYTES_MAX]; /* real */
    int fd;                    /* of the folder, locked */
    int made_fd;               /* of "made" in it, which becomes the image: root, inventory, manifest */
};

/* Makes one, after sweeping. */
int staging_open(struct staging *s, const struct store *store, struct pale_err *e) MUST_CHECK;

/* Lets go of it and removes what is left in it. */
void staging_close(struct staging *s);
#define own_staging CLEANUP(staging_close) struct staging

/* The folder in it that a box that unpacks may write to: its real path, and open. */
int staging_root(const struct staging *s, char *ret, size_t cap, int *ret_fd, struct pale_err *e) MUST_CHECK;

/* Makes a folder in it, by a path that is there but for its last step, and opens it. */
int staging_folder(struct staging *s, const char *name, int *ret_fd, struct pale_err *e) MUST_CHECK;

/* Removes what dead builders left, or, if only_counts, tells how much there is. What cannot be removed now is left to the next. */
unsigned staging_sweep(const struct store *store, bool only_counts);
