/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors: whole reads and writes, pairs and pipes that are CLOEXEC from birth, and the one function through which the
 * host opens anything in a tree that a box can change. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

/* Reads until n bytes or the end; returns the count or -1 with errno. Writes all of it or fails. */
ssize_t fd_read_full(int fd, void *p, size_t n);
bool fd_write_full(int fd, const void *p, size_t n);

/* Reads a whole file up to the buffer's maximum. */
int fd_read_all(int fd, struct buf *out, struct pale_err *e) MUST_CHECK;

bool fd_set_nonblock(int fd, bool on);

/* Entries of a folder as the kernel gives them, struct dirent after struct dirent, into memory aligned for them: no allocation, as
 * readdir needs. The bytes filled, 0 at the end, -1 with errno. */
long fd_entries(int fd, void *ret, size_t cap);

/* 1: there is something in this folder below dirfd. 0: nothing, or no such folder. */
int fd_has_entries(int dirfd, const char *name, struct pale_err *e) MUST_CHECK;

/* Opens rel below dirfd: no symlink, no magic link, no way up or out. This is
 * the only door from the host into files that a box may have made. -1 with errno on failure. */
int fd_open_beneath(int dirfd, const char *rel, int flags, mode_t mode);

/* A folder by a path with no symlink in it, O_PATH. -1 with ELOOP if there is one. */
int fd_open_real_dir(const char *path);

/* Writes content to a new file beside name and renames it over name, so that a reader sees the old or the new. A durable one
 * is on the disk before it has the name. */
int fd_replace_file(int dirfd, const char *name, const void *p, size_t n, mode_t mode, bool durable, struct pale_err *e) MUST_CHECK;

/* The same, always durable, where other files or folders must be on the disk before the new file has the name: one commit of a journal may
 * do for all of them. */
struct fd_after {
    const int *fds;
    size_t count;
    bool is_calm; /* there is little else on their file system that is still to be written, so that all of it can be */
};
int fd_replace_file_after(int dirfd, const char *name, const void *p, size_t n, const struct fd_after *after,
                          struct pale_err *e) MUST_CHECK;

/* Writes a file that is not there yet; it gets its name only when it is whole, and whoever is killed over it leaves nothing, but on
 * file systems that know no file without a name. PALE_EXISTS if there is one of that name. */
int fd_write_new(int dirfd, const char *name, const void *p, size_t n, mode_t mode, bool durable, struct pale_err *e) MUST_CHECK;

/* Opens a folder below dirfd that is ours, though its owner may have closed it: all rights are given back to him. No symlink is followed.
 * -1 with errno on failure. */
int fd_open_own(int dirfd, const char *name);

/* Removes all that is in a folder, of any depth, without ever following a symlink. */
int fd_empty_tree(int fd, struct pale_err *e) MUST_CHECK;

/* Removes a tree of any depth below dirfd without ever following a symlink; no error if there is none. Folders that their owner
 * has closed are opened where we may. After a failure some of the tree may be gone, and some have moved up in it. */
int fd_remove_tree(int dirfd, const char *name, struct pale_err *e) MUST_CHECK;
