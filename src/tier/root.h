/* SPDX-License-Identifier: Apache-2.0 */
/* The root a box sees: made from descriptors of host folders, a generated /etc, a masked /proc and a private /dev. */
#pragma once

#include <stddef.h>

#include "base/err.h"
#include "policy/policy.h"
#include "tier/wall.h"

#define ROOT_USER_MOUNTS_MAX 256
#define ROOT_WRITABLE_MAX (ROOT_USER_MOUNTS_MAX + 16)

/* Detached copies of what comes from the host, opened before the root exists. */
struct root_sources {
    int init_fd, etc_fd;
    int home_fd, tmp_fd; /* the box's own folders on disk; -1: in memory */
    struct root_mount {
        int fd;
        const char *target; /* owned by the policy */
        bool writable, is_dir;
    } mounts[ROOT_USER_MOUNTS_MAX];
    size_t count;
    bool private_done; /* the keeper opened the user's own folders (it is root, the builder is not) */
};

void root_sources_init(struct root_sources *s);
void root_sources_done(struct root_sources *s);

/* The user's folders (project, paths, volumes, the box's own) and pale-init. Called by the keeper where it is root, because the
 * box's ids may not enter the user's folders; otherwise by root_open_sources in the builder. */
int root_open_private_sources(const struct wall_plan *plan, struct root_sources *s, struct pale_err *e) MUST_CHECK;

/* In the builder: whatever is not open yet. */
int root_open_sources(const struct wall_plan *plan, struct root_sources *s, struct pale_err *e) MUST_CHECK;

/* Builds the root and enters it. *ret_proc is the box's procfs, still whole. */
int root_build(const struct wall_plan *plan, struct root_sources *s, int *ret_proc, struct pale_err *e) MUST_CHECK;

/* Masks /proc and makes the root itself read-only. Nothing can be changed in the root afterwards. */
int root_finish(const struct wall_plan *plan, int proc_fd, struct pale_err *e) MUST_CHECK;

/* Is this a path at which a box has a place of its own to write? */
bool root_in_scratch(const char *path);

/* The folders in which the box may write, as it sees them; the texts belong to the plan's policy. */
size_t root_writable(const struct wall_plan *plan, const char *ret[ROOT_WRITABLE_MAX]);
