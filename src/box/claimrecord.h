/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a claim: what one keeper's box may write, for other keepers to read.
 *
 *     NAME                 the box
 *     = DEV:INO PATH       a folder that it may write, and where that was
 *     + DEV:INO            the same: mounted below one of those, or a file
 *     ^ DEV:INO            a folder that holds one of those
 *
 * Numbers are hexadecimal. A line that is not one of these counts as a claim on everything. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/limits.h"
#include "box/claims.h"

#define CLAIM_BYTES_MAX (POLICY_LIST_MAX * PATH_BYTES_MAX)

struct claim_record {
    int fd;                 /* locked by its keeper */
    const char *id, *whose; /* whose: added to the name in a message */
    const char *name, *lines;
    unsigned long marked; /* folders that it may have marked as writable */
};

struct claim_line {
    unsigned long long dev, ino;
    bool is_shared;            /* else it holds one */
    char path[PATH_BYTES_MAX]; /* "" where none is told */
};

int claim_record_write(struct buf *to, const struct claim *c, const struct ancestors *s, struct pale_err *e) MUST_CHECK;

/* Takes the text apart, in place. */
void claim_record_read(struct claim_record *r, char *text);

/* The next line; *at moves on. False if it is none. */
bool claim_line_read(const char **at, struct claim_line *ret);
