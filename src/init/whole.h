/* SPDX-License-Identifier: Apache-2.0 */
/* Wholes: what a file request holds in memory altogether, a file of the box or a text of its input. */
#pragma once

#include <stddef.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/limits.h"

struct whole {
    char *at; /* with room for one byte more */
    size_t len;
    struct stat st;            /* of a file */
    char real[PATH_BYTES_MAX]; /* and where it stands, without a symlink */
};

/* The next text of standard input, in pieces as wire/fileline.h has them. what: for an error. */
int whole_input(struct whole *w, size_t most, const char *what, struct pale_err *e) MUST_CHECK;

/* A regular file, opened without being caught by anything else. */
int whole_file(struct whole *w, const char *path, size_t most, struct pale_err *e) MUST_CHECK;
