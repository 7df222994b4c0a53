/* SPDX-License-Identifier: Apache-2.0 */
/* Project quotas: limits that the kernel holds for all files of one project on a file system, whoever they belong to.
 *
 * How it works: every file has a project, which a folder can hand on to whatever is made in it. Who is not root of the first user
 * namespace can change neither a file's project nor a limit, so what a box writes stays in the project that its folders were given. */
#pragma once

#include <stdint.h>

#include "base/err.h"

/* Bytes and files; 0 is no limit. */
struct quota_amount {
    uint64_t bytes, files;
};

struct quota_state {
    struct quota_amount used, limit;
};

/* Does the file system of this folder hold limits on projects, and may we set them? PALE_UNSUPPORTED with the reason where not. */
int quota_can_hold(int fd, struct pale_err *e) MUST_CHECK;

/* What a project has and may have on the file system of fd. One that was never heard of has nothing. */
int quota_look(int fd, uint32_t project, struct quota_state *ret, struct pale_err *e) MUST_CHECK;

/* The next project from this number on that has files or a limit. PALE_NOT_FOUND if there is none. */
int quota_next(int fd, uint32_t from, uint32_t *ret_project, struct quota_state *ret, struct pale_err *e) MUST_CHECK;

/* Gives it a limit and reads it back: it holds when this returns 0. Bytes count in whole KiB. */
int quota_limit(int fd, uint32_t project, const struct quota_amount *most, struct pale_err *e) MUST_CHECK;

/* The folder and what is made in it from now on belong to a project; 0: to none. Reads it back. */
int quota_mark(int fd, uint32_t project, struct pale_err *e) MUST_CHECK;

/* Which project a folder hands on; 0: none, also where the file system knows of no projects. */
int quota_marked(int fd, uint32_t *ret, struct pale_err *e) MUST_CHECK;
