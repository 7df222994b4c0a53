/* SPDX-License-Identifier: Apache-2.0 */
/* Which paths a policy may name, and which path lies within which. Pure: nothing here looks at a file system. */
#pragma once

#include <stdbool.h>

#include "base/err.h"

/* What a path is named for; a place may be fit for one use and not for another. */
enum hostpath_use {
    HOSTPATH_READ = 1,       /* read: seen at the same place, read-only */
    HOSTPATH_WRITE = 2,      /* write: seen at the same place, writable */
    HOSTPATH_PROJECT = 4,    /* the project folder */
    HOSTPATH_SOURCE_RO = 8,  /* host side of a read-only volume */
    HOSTPATH_SOURCE_RW = 16, /* host side of a writable volume */
    HOSTPATH_TARGET = 32,    /* where a volume appears in the box */
    HOSTPATH_ROOT = 64,      /* volume_root */
};

/* Absolute, in normal form (no empty, "." or ".." component, no trailing slash), without control bytes, not too long, and
 * no place that this use would turn against the host or against the box's own root. The error says which and what to do. */
int hostpath_check(const char *path, enum hostpath_use use, struct pale_err *e) MUST_CHECK;

/* Is inner the same as outer, or beneath it? Both are normal. */
bool hostpath_covers(const char *outer, const char *inner);
