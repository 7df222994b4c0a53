/* SPDX-License-Identifier: Apache-2.0 */
/* What a project's last commit holds of some of its files: a version that both the user's and the box's come from, for merging them.
 *
 * git is run by a process of its own, begun while there is still the right to: whoever asks reads what a box wrote, and has given that up.
 * It is asked for paths and nothing else, and takes them for hostile. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/own.h"

struct gitbase {
    pid_t pid;
    int fd;     /* to the process */
    int dir_fd; /* where the committed versions are, once they were asked for */
};
#define own_gitbase CLEANUP(gitbase_end) struct gitbase

/* Begins it: for project, which is a git repository or lies in one, with a folder of its own in state. git itself is run when it is asked.
 */
int gitbase_start(struct gitbase *g, const char *project, const char *state, struct pale_err *e) MUST_CHECK;

/* Has the committed versions of paths (relative to the project) put below dir_fd, and leaves out what is in no commit, is too large to
 * merge, or cannot be asked for. *ret: how many were found. No git, no repository: none. Once. */
int gitbase_ask(struct gitbase *g, char *const *paths, size_t count, size_t *ret, struct pale_err *e) MUST_CHECK;

/* Ends it, and the folder goes. It also does when whoever asks dies. */
void gitbase_end(struct gitbase *g);
