/* SPDX-License-Identifier: Apache-2.0 */
/* A walk through a tree of the box, for requests that look for something in it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/wildcard.h"

#define WALK_DEPTH 128 /* folders in each other; each has a descriptor open */
#define WALK_MS 20000  /* then what was found is all there is */

struct walk_entry {
    int dir_fd;
    const char *name; /* in it */
    const char *path; /* from the top; the walk's own memory */
    char type;        /* f file, d folder, l symlink, ? else */
};

struct walk {
    const struct wildcard *pattern; /* what is visited; NULL: everything */
    bool hidden;                    /* folders whose name begins with a dot too, though the pattern does not name them */
    bool sorted;                    /* by name, in each folder */
    bool (*visit)(void *arg, const struct walk_entry *en); /* false: it is enough, the walk ends */
    void *arg;
    /* How it went. */
    uint64_t seen;
    bool ended;   /* visit said so */
    bool partial; /* time was up, or something was too deep */
};

/* Visits what is below a folder ("": the one we are in) and matches. Symlinks are not followed, but for the folder itself; `.git` folders
 * and those that cannot be opened are passed over, and so are file systems that show the kernel's state. */
int walk_run(struct walk *w, const char *top, struct pale_err *e) MUST_CHECK;

/* Is the time up that a walk that began at clock_ms() may take? */
bool walk_is_late(int64_t since_ms);
