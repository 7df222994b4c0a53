/* SPDX-License-Identifier: Apache-2.0 */
/* The shadow folder: where a harness works instead of in the project, and where its settings stand.
 *
 * In the user's runtime folder, 0700, never in a repository. Its path is the same each time for a project and a harness, so that a
 * harness which remembers sessions by folder finds them again; while one is in use the next gets a number. */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/limits.h"

struct shadow {
    int dir_fd, lock_fd;
    char path[PATH_BYTES_MAX];
    char work[PATH_BYTES_MAX]; /* an empty folder in it */
    char home[PATH_BYTES_MAX]; /* another, for a trial */
};

#define own_shadow CLEANUP(shadow_close) struct shadow

/* Only the paths; nothing is made. */
int shadow_name(struct shadow *s, const char *harness, const char *project, unsigned number, struct pale_err *e) MUST_CHECK;

/* Makes it, empty but for work and home. What somebody who was killed has left there goes first. */
int shadow_open(struct shadow *s, const char *harness, const char *project, struct pale_err *e) MUST_CHECK;

/* Removes it. */
void shadow_close(struct shadow *s);
