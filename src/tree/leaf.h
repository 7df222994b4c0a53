/* SPDX-License-Identifier: Apache-2.0 */
/* One name in a tree that a box may have written: what stands there, and its content.
 *
 * How it works: a root descriptor and a relative path go through fd_open_beneath to an O_PATH descriptor, so no symlink is followed and
 * nothing is opened that could block or act; only what turned out to be a regular file is opened again, by the descriptor and not by the
 * name. Whoever changes the tree meanwhile gets an error or the older or newer content, never another file system object.
 *
 * In a layer of an overlay a name can also mean "deleted" (a character device 0:0, or an empty file with user.overlay.whiteout in a folder
 * whose user.overlay.opaque is "x"), and a folder can hide what lies below it (opaque "y"). Attributes that overlayfs makes of itself
 * are passed over; redirect, metacopy and any other user.overlay name are poison: our mounts never make them, so somebody planted them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#include "base/buf.h"
#include "base/err.h"

enum leaf_kind {
    LEAF_NONE, /* nothing of that name */
    LEAF_FILE,
    LEAF_FOLDER,
    LEAF_LINK,
    LEAF_FIFO,
    LEAF_SOCKET,
    LEAF_DEVICE,   /* other than 0:0 */
    LEAF_WHITEOUT, /* a character device 0:0 */
    LEAF_KIND_COUNT,
};

struct leaf {
    enum leaf_kind kind;
    bool opaque;         /* a folder that hides what lies below it */
    bool has_whiteouts;  /* a folder in which empty files may be whiteouts */
    bool marked_deleted; /* an empty file that is one if its folder has them */
    struct stat st;      /* if there is something */
};

/* Looks at root_fd/path; "" is the root itself. With marks, what overlayfs wrote down about a file or folder is read too, which only a
 * layer has. That nothing is there is no error. Errors: a symlink on the way (PALE_BUSY), poison (PALE_CORRUPT), a folder whose attributes
 * we may not read. */
int leaf_look(int root_fd, const char *path, bool marks, struct leaf *ret, struct pale_err *e) MUST_CHECK;

/* The same for an open descriptor, which may be O_PATH; path is for the error. */
int leaf_look_fd(int fd, const char *path, bool marks, struct leaf *ret, struct pale_err *e) MUST_CHECK;

/* Opens a regular file for reading; ret (which may be NULL) is what was opened. Anything else is PALE_BUSY: it was changed meanwhile. */
int leaf_open(int root_fd, const char *path, struct leaf *ret, int *ret_fd, struct pale_err *e) MUST_CHECK;

/* Opens a folder for listing. */
int leaf_open_folder(int root_fd, const char *path, int *ret_fd, struct pale_err *e) MUST_CHECK;

/* Opens what an O_PATH descriptor stands for again. -1 with errno. */
int leaf_reopen(int path_fd, int flags);

/* Where a symlink leads, as it stands there; at most PATH_BYTES_MAX bytes. */
int leaf_read_link(int root_fd, const char *path, struct buf *out, struct pale_err *e) MUST_CHECK;

/* Are these two open files alike, byte for byte, from the start? Their offsets do not change. */
int leaf_same_bytes(int a_fd, int b_fd, bool *ret, struct pale_err *e) MUST_CHECK;

/* Reads a regular file of at most out's maximum. PALE_LIMIT if it is longer. */
int leaf_read(int fd, struct buf *out, struct pale_err *e) MUST_CHECK;

/* When the file came to be, which nobody can set; false where the file system does not know. */
bool leaf_birth(int root_fd, const char *path, struct timespec *ret);

/* Is a before b? */
bool leaf_time_before(struct timespec a, struct timespec b);

/* Is it the same object, not written since? Renames and links, which change only the ctime, do not count. */
bool leaf_is_unchanged(const struct leaf *a, const struct leaf *b);

/* A word for people and JSON: "file", "folder", "link", "fifo", "socket", "device", "none". */
const char *leaf_kind_name(enum leaf_kind kind);
