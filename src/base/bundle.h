/* SPDX-License-Identifier: Apache-2.0 */
/* Bundles: a file or a tree as one stream of bytes, for copying between a host and a box. Both ends use the same two functions,
 * and each treats the other as hostile.
 *
 * How it works: entries follow each other, each with a type, mode, time and one name (never a path); a folder is entered and
 * left; a file's size goes ahead of its bytes (base/bundlehead.h). The receiver creates everything below a descriptor it holds, never
 * follows a symlink, replaces rather than opens what is there, and drops setuid bits and everything that is no file, folder or symlink. No
 * allocation; depth and name length are bounded. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct bundle_count {
    uint64_t files, folders, links, bytes;
    uint64_t changed; /* files that grew or shrank while they were sent: cut, or filled up with zeros, to the size that was told */
    uint64_t skipped; /* not files, folders or links, or links that lead out where that is refused */
};

/* Sends what stands at name below dirfd to out_fd. A symlink is sent as a link, but if follow is set and name itself is one, as
 * what it points at. */
int bundle_send(int out_fd, int dirfd, const char *name, bool follow, struct bundle_count *ret, struct pale_err *e) MUST_CHECK;

/* Receives a bundle into dirfd under name. With inner_links_only, symlinks that are absolute or climb out of the bundle are
 * skipped and counted. */
int bundle_receive(int in_fd, int dirfd, const char *name, bool inner_links_only, struct bundle_count *ret, struct pale_err *e) MUST_CHECK;
