/* SPDX-License-Identifier: Apache-2.0 */
/* What pale-warden took out of a box's live project, as the user looks at it afterwards.
 *
 * How it works: the folder `quarantine` of the box's state holds a thing under its number N, or a copy of it as N.bundle, and in N.path
 * where it stood. All of it is the box's: nothing is opened but by descriptor, and nothing followed. A thing that is given back is copied,
 * so that what the box may still hold of it, an open descriptor or a second name, leads to another file. */
#pragma once

#include <stdint.h>

#include "base/json.h"
#include "box/place.h"

struct quarantined {
    unsigned number;
    char path[PATH_BYTES_MAX]; /* relative to the project, as the box named it: foreign bytes */
    const char *kind;          /* "file", "folder", "symlink", "copy", "other" */
    int64_t taken_unix;        /* seconds */
};

/* Calls fn for each thing, in the order in which they were taken; stops at a negative answer. */
int quarantine_each(const struct place *p, int (*fn)(void *arg, const struct quarantined *q), void *arg, struct pale_err *e) MUST_CHECK;

/* A thing as an object of a list. */
void quarantine_json(const struct quarantined *q, struct json *j);

/* Puts a thing back to where it was, or under its name into the folder to (NULL: back). The box must not run: it would be taken again.
 * The audit has it
 * before. PALE_EXISTS if something stands there; then nothing has changed. */
int quarantine_release(const struct place *p, unsigned number, const char *to, const char *caller, struct pale_err *e) MUST_CHECK;

/* Forgets a thing. */
int quarantine_drop(const struct place *p, unsigned number, struct pale_err *e) MUST_CHECK;
