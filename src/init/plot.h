/* SPDX-License-Identifier: Apache-2.0 */
/* The ground on which an image is laid: a folder and everything below it, changed entry by entry.
 *
 * Paths are those of net/tarpath: relative, every step a plain name, "" for the folder itself. They are walked without following any
 * symlink; one that leads through something that is no folder is an error. What stands where an entry goes gives way to it; folders stay
 * folders. Nobody else changes the folder meanwhile. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/limits.h"
#include "image/left.h"

struct plot {
    int root;
    int here; /* the folder that the last entry went into, open: the next one mostly goes there too */
    char here_path[PATH_BYTES_MAX];
    int file;            /* being written */
    uint64_t since_look; /* bytes, since the room left on the disk was looked at */
    uint64_t entries;
    bool strict;               /* what stands where an entry goes does not give way: it is an error */
    bool holes;                /* pieces that are all zeros are not written */
    uint64_t dug;              /* bytes of zeros at the end of the file that is being written */
    const uint8_t *attributes; /* of the file or folder that comes next (base/attributes.h) */
    size_t attributes_len;
    int marks; /* the list of them; -1: not begun */
    struct left left;
};

int plot_open(struct plot *p, const char *folder, struct pale_err *e) MUST_CHECK;
int plot_close(struct plot *p, struct pale_err *e) MUST_CHECK;

int plot_folder(struct plot *p, const char *path, unsigned mode, struct pale_err *e) MUST_CHECK;
/* The same when all that goes into it has come, which made it: its mode and time as they are to be. */
int plot_leave_folder(struct plot *p, const char *path, unsigned mode, int64_t mtime, struct pale_err *e) MUST_CHECK;

int plot_link(struct plot *p, const char *path, const char *target, struct pale_err *e) MUST_CHECK;
/* The same with a time of its own. */
int plot_dated_link(struct plot *p, const char *path, const char *target, int64_t mtime, struct pale_err *e) MUST_CHECK;

/* Another name for a file that is there. Where the kernel refuses one, a copy. */
int plot_hard_link(struct plot *p, const char *path, const char *target, struct pale_err *e) MUST_CHECK;

int plot_begin_file(struct plot *p, const char *path, struct pale_err *e) MUST_CHECK;
int plot_write(struct plot *p, const void *data, size_t n, struct pale_err *e) MUST_CHECK;
int plot_end_file(struct plot *p, unsigned mode, int64_t mtime, struct pale_err *e) MUST_CHECK;

/* Removes what is there, if anything is: one entry with all that is in it, or all that is in a folder. */
int plot_hide(struct plot *p, const char *path, struct pale_err *e) MUST_CHECK;
int plot_empty(struct plot *p, const char *path, struct pale_err *e) MUST_CHECK;

/* Writes down what only the host can make so: a byte that says what, a path and a zero, in the file name of the ground, which it makes. */
int plot_mark(struct plot *p, const char *name, char what, const char *path, struct pale_err *e) MUST_CHECK;
