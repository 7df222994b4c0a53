/* SPDX-License-Identifier: Apache-2.0 */
/* The mantle: a process of ours behind the wall, out of the box's sight, that lays read-only mounts over guarded names for as long as the
 * box lives. It sees what the box sees, and nothing of the host. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

struct mantle {
    int fd; /* the talk with it; -1: there is none */
    pid_t pid;
};

/* Starts it; it takes the two namespaces and waits. project: the absolute path at which the box sees the project. */
int mantle_start(struct mantle *l, int user_fd, int mount_fd, const char *project, struct pale_err *e) MUST_CHECK;

/* Enters the box, whose wall must stand. */
int mantle_enter(struct mantle *l, struct pale_err *e) MUST_CHECK;

/* Makes path, relative to the project, read-only in the box, and every folder above it a mount that cannot be moved. What is guarded
 * already stays so. PALE_NOT_FOUND if it is not there, PALE_DENIED if a symlink is in the way. */
int mantle_lay(struct mantle *l, const char *path, struct pale_err *e) MUST_CHECK;

/* Gives what stands at path to the owner of the project. Only what belongs to another id of the box can be given; that of others of the
 * host is PALE_DENIED. */
int mantle_give(struct mantle *l, const char *path, struct pale_err *e) MUST_CHECK;

/* Is there a mount of its own at path? Changes nothing. */
bool mantle_is_laid(struct mantle *l, const char *path);
