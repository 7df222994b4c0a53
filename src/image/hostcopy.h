/* SPDX-License-Identifier: Apache-2.0 */
/* Copies folders of the host into an image: files, folders and symlinks, with blocks shared where the file system can.
 *
 * The host's own folders are trusted not to be traps, but are walked like any other: step by step, nothing followed. Files that others
 * may not read, or that we may not, are left out and counted; so is everything that is no file, folder or symlink. */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "image/left.h"

struct hostcopy {
    int to_fd;        /* the image's root */
    bool only_counts; /* nothing is made */
    uint64_t files, bytes;
    bool shares; /* files shared their blocks with the host's so far */
    struct left *left;
    const volatile sig_atomic_t *stop;
    void (*progress)(void *arg, uint64_t entries, uint64_t bytes);
    void *progress_arg;
};

/* Copies what stands at /path to the same place in the image; folders around it are made. No error if there is nothing. */
int hostcopy_take(struct hostcopy *h, const char *path, struct pale_err *e) MUST_CHECK;

/* Can a file of the host's share its blocks with one in the folder? */
bool hostcopy_can_share(int to_fd, const char *host_file);
