/* SPDX-License-Identifier: Apache-2.0 */
/* Several closed layers made into one that stands for all of them, so that a long chain stays short to open.
 *
 * Nothing is copied: files, links and whiteouts of the result are further names of those in the layers, which never change. Folders are
 * made anew, with the mode and times of the topmost, and hide what lies below wherever one of the layers did. Whiteouts stay, for there may
 * be something to hide further down. What the layers hold is hostile, and is neither followed nor opened. */
#pragma once

#include <stddef.h>

#include "base/err.h"

/* layer_fds: folders of one part of each layer, the highest first. to_fd: an empty folder on the same file system. */
int weld_run(const int *layer_fds, size_t count, int to_fd, struct pale_err *e) MUST_CHECK;

/* The same as if none of the layers said anything about these paths and what lies below them. paths: relative, sorted by bytes. */
int weld_without(const int *layer_fds, size_t count, const char *const *paths, size_t path_count, int to_fd, struct pale_err *e) MUST_CHECK;
