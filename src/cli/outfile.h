/* SPDX-License-Identifier: Apache-2.0 */
/* A file that gets its name when it is whole and on the disk: nobody ever finds half of it there. */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/limits.h"
#include "base/own.h"

struct outfile {
    int fd;                        /* to write to */
    int dir_fd;                    /* of its folder; -1: it is standard output, and has no name */
    char name[FILE_NAME_MAX + 1];  /* in it */
    char other[FILE_NAME_MAX + 1]; /* its name until then; "": it has none */
    bool replaces;
};
#define OUTFILE_NONE                                                                                                                       \
    {                                                                                                                                      \
        .fd = -1, .dir_fd = -1                                                                                                             \
    }

/* Begins a file; "-" is standard output, unless that is a terminal. PALE_EXISTS if something is there and is not to be replaced. */
int outfile_open(struct outfile *o, const char *path, bool replaces, struct pale_err *e) MUST_CHECK;

/* All is written: it gets its name. */
int outfile_keep(struct outfile *o, struct pale_err *e) MUST_CHECK;

/* Lets go of it, and of what was not kept. */
void outfile_close(struct outfile *o);
#define own_outfile CLEANUP(outfile_close) struct outfile
