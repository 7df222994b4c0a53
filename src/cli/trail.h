/* SPDX-License-Identifier: Apache-2.0 */
/* A box's audit log, line by line, here or through a daemon elsewhere. */
#pragma once

#include <stdio.h>

#include "base/buf.h"
#include "cli/door.h"

struct trail {
    struct door door;
    FILE *file; /* of this host; NULL: there is none yet */
    char *line;
    size_t cap;
    uint64_t offset; /* of a daemon's */
    struct buf text;
    size_t at;
};
void trail_close(struct trail *t);

/* Needs a trail that is all zero. */
int trail_open(struct trail *t, const struct args *a, const char *box, struct pale_err *e) MUST_CHECK;

/* 1: a line, without its end, until the next call; 0: there is none just now. */
int trail_next(struct trail *t, const char **ret, size_t *ret_len, struct pale_err *e) MUST_CHECK;

/* Goes past all there is. */
int trail_skip(struct trail *t, struct pale_err *e) MUST_CHECK;
