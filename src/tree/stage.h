/* SPDX-License-Identifier: Apache-2.0 */
/* The hidden folder in which new things are made before they take their names in the user's tree, each by one exchange.
 *
 * How it works: `.pale-landing` in the root of the tree, for its owner alone, held by descriptor and locked by one landing at a time. A new
 * file, link or folder is made in it under a passing name, then gets one that tells its own inode and what it is to replace (inode and time
 * of the last write). It takes its place by RENAME_EXCHANGE, or RENAME_NOREPLACE where nothing stands; what came out must be what was
 * compared, else it is put back. Who is killed leaves that folder and nothing else: the next landing removes from it what it can show to be
 * its own or to have been compared, and keeps whatever else a race may have brought in, saying so.
 *
 * Nothing is ever written into a file that stands in the tree, so a hard link or a swapped name cannot carry a write elsewhere. */
#pragma once

#include "tree/leaf.h"

#define STAGE_FOLDER ".pale-landing"
#define STAGE_NAME_BYTES 96

struct stage {
    int target_fd; /* its root, open for reading, and locked */
    int fd;        /* the hidden folder */
    unsigned made; /* so far: the next passing name */
    unsigned kept; /* things of an earlier landing that were not ours to remove; they are in the hidden folder */
};

struct staged {
    char name[STAGE_NAME_BYTES]; /* in the hidden folder; "" for none */
    struct leaf leaf;
};

/* PALE_BUSY if another landing is at work here. */
int stage_open(struct stage *s, int target_fd, struct pale_err *e) MUST_CHECK;

/* Removes the folder, unless something was kept in it. */
void stage_close(struct stage *s);

/* Makes an empty file (ret_fd: open for reading and writing), a link, an empty folder. */
int stage_file(struct stage *s, struct staged *ret, int *ret_fd, struct pale_err *e) MUST_CHECK;
int stage_link(struct stage *s, const char *to, struct staged *ret, struct pale_err *e) MUST_CHECK;
int stage_folder(struct stage *s, mode_t mode, struct staged *ret, struct pale_err *e) MUST_CHECK;
void stage_drop(struct stage *s, struct staged *st);

/* Says what it is to replace. Once it has been written: what was staged is looked at here. */
int stage_promise(struct stage *s, struct staged *st, const struct leaf *expect, struct pale_err *e) MUST_CHECK;

/* Puts it in the place of dir_fd/name, where expect stood when it was compared (LEAF_NONE: nothing); a folder that is replaced must be
 * empty. PALE_BUSY: something else stands there by now, and all is as before. What was staged is gone afterwards either way. */
int stage_put(struct stage *s, struct staged *st, int dir_fd, const char *name, const struct leaf *expect, struct pale_err *e) MUST_CHECK;

/* Takes dir_fd/name away, likewise. */
int stage_take(struct stage *s, int dir_fd, const char *name, const struct leaf *expect, struct pale_err *e) MUST_CHECK;
