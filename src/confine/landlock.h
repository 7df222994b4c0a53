/* SPDX-License-Identifier: Apache-2.0 */
/* Landlock: the second lock on files. Everything may be read where the mounts allow it; writing, creating and removing is
 * allowed beneath the named folders alone. With scoped, abstract sockets and signals stay within the domain where the kernel can do it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

/* The kernel's Landlock ABI, 0 if there is none, -1 with errno if that could not be found out. */
int landlock_abi(void);

/* How many more domains a process like this one could enter tells how many it is in: the kernel has a fixed number. A child that
 * shares our memory tries, beside whatever we do meanwhile; one count at a time. */
struct landlock_count {
    pid_t pid;
    int left;
};
void landlock_count_start(struct landlock_count *c);
/* -1 if there is no telling. */
int landlock_count_end(struct landlock_count *c);

/* The same for a process that needs no other file: reading and writing is allowed beneath the named folders alone, no program can be
 * run, and no TCP port be bound or reached, as far as the kernel can hold it. */
int landlock_restrict_all(const char *const *paths, size_t count, struct pale_err *e) MUST_CHECK;

/* The same with no file at all, and TCP as it is: for who dials. */
int landlock_restrict_to_connect(struct pale_err *e) MUST_CHECK;

/* The same for folders that are open already, each for what it is used for; reading beneath it in any case. */
enum landlock_use {
    LANDLOCK_READ,
    LANDLOCK_LINK, /* its files may get names elsewhere, where they are no more writable than here */
    LANDLOCK_FILL, /* names may be made in it, and nothing be written or removed */
    LANDLOCK_WRITE,
    LANDLOCK_USE_COUNT
};
struct landlock_place {
    int fd;
    enum landlock_use use;
};
int landlock_restrict_to(const struct landlock_place *places, size_t count, struct pale_err *e) MUST_CHECK;

/* Restricts the calling process and all it will start. paths are opened here, in the caller's view; a path that is not there
 * is skipped. Needs NO_NEW_PRIVS or CAP_SYS_ADMIN in this user namespace. */
int landlock_restrict_writes(const char *const *paths, size_t count, bool scoped, struct pale_err *e) MUST_CHECK;
