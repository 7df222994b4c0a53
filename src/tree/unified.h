/* SPDX-License-Identifier: Apache-2.0 */
/* A difference as people and `git apply` read it: the unified form, with git's headers.
 *
 * Names and content are hostile; names are quoted as git quotes them, so that nothing but printable ASCII is left of them, and content goes
 * out as it is, behind its mark: who shows it on a terminal makes it harmless first. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

enum unified_kind { UNIFIED_NONE, UNIFIED_FILE, UNIFIED_LINK };

struct unified_side {
    enum unified_kind kind;
    mode_t mode;    /* bits 0777 of a file */
    const void *at; /* content, or where the link leads */
    size_t len;
    bool too_large; /* the content is not here: it is longer than TEXT_BYTES_MAX */
};

struct unified_count {
    uint32_t removed, added; /* lines */
    bool binary;             /* or too large: not compared by lines */
};

/* Appends the difference of one path, or nothing if there is none. What cannot be shown by lines is told as "Binary files … differ", or
 * likewise as "Files … are too large to show". A file that became a link is told as deleted and added. out may be NULL for the count
 * alone; it fails as a buffer does. */
int unified_write(const char *path, const struct unified_side *was, const struct unified_side *is, struct unified_count *ret,
                  struct buf *out, struct pale_err *e) MUST_CHECK;

/* A name as git writes it: plain, or in double quotes with C escapes where it holds anything but printable ASCII. */
void unified_name(struct buf *out, const char *prefix, const char *path);
