/* SPDX-License-Identifier: Apache-2.0 */
/* The index of a git repository, read by ourselves: no git is run where a box is made. Versions 2 to 4 with SHA-1 names; anything else,
 * and anything that is not whole, is an error, and the caller does without. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/limits.h"

#define GITINDEX_OID_BYTES 20

struct gitindex_entry {
    char path[PATH_BYTES_MAX]; /* as it stands: not necessarily a path */
    uint32_t ctime[2], mtime[2], ino, mode, size;
    uint8_t oid[GITINDEX_OID_BYTES];
};

/* Tells every entry that stands for a file in the working tree: in no conflict, and none that git was told not to look at. Other than 0
 * from tell ends it and is its result. */
int gitindex_read(const uint8_t *p, size_t n, int (*tell)(void *arg, const struct gitindex_entry *entry, struct pale_err *e), void *arg,
                  struct pale_err *e) MUST_CHECK;
