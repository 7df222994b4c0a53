/* SPDX-License-Identifier: Apache-2.0 */
/* Host folders and all the folders that hold them, by what the kernel knows them by: device and inode, not path.
 *
 * How it works: from an open folder the set climbs by "..", which crosses mounts as a path does. A bind mount has a second line of
 * ancestors, on the file system it was taken from: they are looked for under every other mount of that file system and compared by inode.
 * What is mounted below a folder is shown to a box with it, so each such mount is in the set as the folder itself is. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/own.h"
#include "box/mounttable.h"

enum ancestor_role {
    ROLE_SHARED = 1, /* the folder (or file) itself, or what is mounted below it */
    ROLE_ABOVE = 2,  /* holds one of those */
};

struct ancestor {
    unsigned long long dev, ino, mount;
    unsigned roles;
    int fd; /* open; for reading if is_readable, else as a place alone */
    bool is_dir, is_readable;
    size_t holder; /* of a file: which folder of the set it is in */
};

struct ancestors {
    struct ancestor *at;
    size_t count, room;
    struct mount_table mounts; /* read when it is needed */
    bool is_light;             /* to compare only: nothing is held open */
};

void ancestors_done(struct ancestors *s);
#define own_ancestors CLEANUP(ancestors_done) struct ancestors

/* The same set as it is now: folders may have been moved, or deleted, which leaves them out. */
int ancestors_renew(const struct ancestors *old, struct ancestors *ret, struct pale_err *e) MUST_CHECK;

/* Adds a folder or file by its real path, what is mounted below it, and all that hold these. What is not there adds nothing. */
int ancestors_add_path(struct ancestors *s, const char *path, struct pale_err *e) MUST_CHECK;

/* Adds an open folder and those that hold it, but nothing that is mounted below it. levels: so many folders above it at most. */
int ancestors_add_folder(struct ancestors *s, int fd, unsigned levels, struct pale_err *e) MUST_CHECK;
#define ANCESTORS_ALL (~0u)

/* A device number of stat, as the set has it. */
unsigned long long ancestor_device(dev_t dev);

/* The one with this device and inode, or NULL. */
const struct ancestor *ancestors_find(const struct ancestors *s, unsigned long long dev, unsigned long long ino);

/* Is one of a's folders among b's folders or those above them, or the reverse? Which of a, or NULL. */
const struct ancestor *ancestors_clash(const struct ancestors *a, const struct ancestors *b);
