/* SPDX-License-Identifier: Apache-2.0 */
/* Mounts by descriptor: made detached, given their attributes, and only then attached below a directory descriptor. No mount
 * is ever visible in a weaker state than it ends in, and no path is resolved twice. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

enum mounts_flag {
    MOUNTS_RO = 1,
    MOUNTS_NOEXEC = 2,
    MOUNTS_RECURSIVE = 4, /* with everything mounted below it */
    MOUNTS_DEV = 8,       /* device nodes work (only for the few nodes of /dev) */
};

/* A detached copy of the mount at path (below dirfd), nosuid, nodev unless MOUNTS_DEV, and private: a copy of a shared mount is
 * shared too, and what is then mounted in it would appear on the host. With follow a final symlink is followed. Returns a
 * descriptor or a negative code. */
int mounts_clone(int dirfd, const char *path, unsigned flags, bool follow, struct pale_err *e) MUST_CHECK;

/* The same for what fd already points at. */
int mounts_clone_fd(int fd, unsigned flags, struct pale_err *e) MUST_CHECK;

/* A detached copy as it is, with everything below it; for trees that are sealed together later, in a namespace whose mounts are
 * private already. */
int mounts_copy(int dirfd, const char *path, struct pale_err *e) MUST_CHECK;

/* Shows host ids as box ids: userns_fd's map turns ids on disk into ids of the box. */
int mounts_idmap(int tree_fd, int userns_fd, struct pale_err *e) MUST_CHECK;

/* A fresh tmpfs with a size and an inode maximum (0: the kernel's default). */
int mounts_tmpfs(uint64_t bytes, uint64_t inodes, unsigned mode, struct pale_err *e) MUST_CHECK;
int mounts_proc(struct pale_err *e) MUST_CHECK;
/* A devpts of its own, with at most that many terminals (0: as many as the host has). */
int mounts_devpts(uid_t uid, gid_t gid, unsigned most, struct pale_err *e) MUST_CHECK;

/* Adds attributes to an attached or detached mount. */
int mounts_restrict(int fd, unsigned flags, struct pale_err *e) MUST_CHECK;

/* Attaches tree_fd at rel below dirfd; rel is resolved without following symlinks. */
int mounts_attach(int tree_fd, int dirfd, const char *rel, struct pale_err *e) MUST_CHECK;

/* The same at what is open already; rel: its name, for the error. */
int mounts_attach_at(int tree_fd, int at, const char *rel, struct pale_err *e) MUST_CHECK;

/* The same in a tree that nobody but us has touched: rel is resolved as it stands. -PALE_NOT_FOUND if there is no such place. */
int mounts_place(int tree_fd, int dirfd, const char *rel, struct pale_err *e) MUST_CHECK;

/* Cuts the calling process's mount namespace from every other. */
int mounts_make_private(struct pale_err *e) MUST_CHECK;

/* Makes the mount at root_fd the root of this namespace and lets go of everything else. */
int mounts_enter_root(int root_fd, struct pale_err *e) MUST_CHECK;
