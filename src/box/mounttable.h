/* SPDX-License-Identifier: Apache-2.0 */
/* The mounts of this process, as /proc/self/mountinfo tells them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/own.h"

struct mount_row {
    unsigned long long id;
    char device[24];   /* "major:minor" of the file system */
    const char *root;  /* which folder of the file system is mounted */
    const char *point; /* and where */
    bool is_resolved;  /* for whoever walks the table: this row was dealt with */
};

struct mount_table {
    char *text; /* the rows point into it */
    struct mount_row *row;
    size_t count;
};

/* Reads the table anew. */
int mount_table_read(struct mount_table *t, struct pale_err *e) MUST_CHECK;

void mount_table_done(struct mount_table *t);
#define own_mount_table CLEANUP(mount_table_done) struct mount_table

/* The row of a mount by its number, or NULL. */
struct mount_row *mount_table_find(struct mount_table *t, unsigned long long id);

/* Takes the text of a mountinfo apart, in place; for the tests. */
int mount_table_parse(struct mount_table *t, char *text, struct pale_err *e) MUST_CHECK;
