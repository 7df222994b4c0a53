/* SPDX-License-Identifier: Apache-2.0 */
/* Blobs of the user's repository by their names: what a file held when a box began with it (box/start.h), for merging.
 *
 * git is run by a process of its own, begun while there is still the right to: whoever asks reads what a box wrote, and has given that up.
 * It is asked for names of objects and nothing else, and takes them for hostile. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/own.h"

struct gitbase {
    pid_t pid;
    int fd;     /* to the process */
    int dir_fd; /* where it puts what was asked for */
};
#define own_gitbase CLEANUP(gitbase_end) struct gitbase

/* Begins it: for project, which is a git repository or lies in one, with a folder of its own in state. git itself is run when it is asked.
 */
int gitbase_start(struct gitbase *g, const char *project, const char *state, struct pale_err *e) MUST_CHECK;

/* The content of a blob, open for reading; *ret_fd is -1 if git has none of that name any more, it is too large to be merged, there is no
 * git or no repository. Each answer takes the place of the one before. */
int gitbase_ask(struct gitbase *g, const char *oid, int *ret_fd, uint64_t *ret_size, struct pale_err *e) MUST_CHECK;

/* Has the user told git to ignore this path of the project? False where nobody can tell. */
bool gitbase_is_ignored(struct gitbase *g, const char *path, bool folder);

/* Has the user given this path to a filter of git's, so that a blob is not what the file holds? True where nobody can tell. */
bool gitbase_is_filtered(struct gitbase *g, const char *path);

/* Ends it, and the folder goes. It also does when whoever asks dies. */
void gitbase_end(struct gitbase *g);
