/* SPDX-License-Identifier: Apache-2.0 */
/* Files with several names, in a walk: by which name each was met first. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/err.h"

struct twin;

/* All zero at first. */
struct twins {
    struct twin *table;
    size_t count, cap; /* a power of two, at most LAYERCOPY_TWINS_MAX */
};

void twins_done(struct twins *t);

/* The name it was met by; NULL if it was not. */
const char *twins_find(const struct twins *t, const struct stat *st);

/* Remembers one that was not met before. *ret_full: there is no room for more, and it is not remembered. */
int twins_add(struct twins *t, const struct stat *st, const char *path, bool *ret_full, struct pale_err *e) MUST_CHECK;
