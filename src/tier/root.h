/* SPDX-License-Identifier: Apache-2.0 */
/* The root a box sees: made from descriptors of host folders, a generated /etc, a masked /proc and a private /dev. */
#pragma once

#include <stddef.h>

#include "base/err.h"
#include "policy/policy.h"
#include "tier/layered.h"
#include "tier/wall.h"

#define ROOT_USER_MOUNTS_MAX 256
#define ROOT_WRITABLE_MAX (ROOT_USER_MOUNTS_MAX + 16)

/* Detached copies of what comes from the host, opened before the root exists. */
struct root_sources {
    int init_fd, etc_fd;
    struct layered layers;
    struct root_mount {
        int fd;             /* -1: what the layers of the project are joined to */
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

/* What of a root that is being built the later steps need. */
struct root {
    int root_fd, proc_fd; /* the box's procfs, still whole */
    int scratch_fd;       /* what it writes in memory; -1: it has been attached */
};
void root_init(struct root *r);
void root_done(struct root *r);
#define own_root CLEANUP(root_done) struct root

/* Builds the root and enters it. What the box may write is not in it yet, unless the root is an image, which is. */
int root_build(const struct wall_plan *plan, struct root_sources *s, struct root *ret, struct pale_err *e) MUST_CHECK;

/* Masks /proc. */
int root_finish(const struct wall_plan *plan, const struct root *r, struct pale_err *e) MUST_CHECK;

/* Attaches all that the box may write, and the user's folders. The layers come last, since it may take a while until they are to be had. */
int root_open_up(const struct wall_plan *plan, struct root_sources *s, struct root *r, struct pale_err *e) MUST_CHECK;

/* Is this a path at which a box has a place of its own to write? */
bool root_in_scratch(const char *path);

/* The folders in which the box may write, as it sees them; the texts belong to the plan's policy. */
size_t root_writable(const struct wall_plan *plan, const char *ret[ROOT_WRITABLE_MAX]);

/* --- steps that the root of an image has too (tier/imageroot.c) --- */

/* mkdir -p below root, step by step, never through a symlink: a place below /tmp may hold what the box left there last time. Returns the
 * last folder's descriptor. */
int root_make_dirs(int root, const char *rel, size_t len, struct pale_err *e) MUST_CHECK;

/* The fixed skeleton: folders, the links of /dev, empty files to mount nodes on. */
int root_make_skeleton(int root, struct pale_err *e) MUST_CHECK;

/* Attaches the root in our namespace. Any host folder will do to hang it on; the host does not see it. */
int root_hang(int root, struct pale_err *e) MUST_CHECK;

/* The nodes of /dev, and its terminals, on files that are there for them. */
int root_make_dev(const struct wall_plan *plan, int root, struct pale_err *e) MUST_CHECK;

/* A file of /etc that differs from box to box (etc_own_names), written below proc of root, which /proc will hide, as a mount to be laid
 * over the one of that name. Returns a descriptor. */
int root_own_file(const struct wall_plan *plan, int root, size_t which, struct pale_err *e) MUST_CHECK;

/* What the box writes in memory, attached at proc of root; a descriptor. Then each of its folders, or the joined layers, at their places.
 */
int root_make_scratch(const struct wall_plan *plan, int root, struct pale_err *e) MUST_CHECK;
int root_attach_scratch(const struct wall_plan *plan, int root, int scratch, const int joined[PART_COUNT], struct pale_err *e) MUST_CHECK;

/* The places of the user's folders that lie in the scratch (a project below /tmp), or all others. */
int root_make_mount_points(int root, const struct root_sources *s, bool in_scratch, struct pale_err *e) MUST_CHECK;
int root_attach_user_mounts(const struct wall_plan *plan, int root, struct root_sources *s, int project_fd, struct pale_err *e) MUST_CHECK;

/* Does fn as the box's user, whose writable places are: on the disk they may be mounts that know no other id. */
int root_as_user(const struct wall_plan *plan, int (*fn)(void *arg, struct pale_err *e), void *arg, struct pale_err *e) MUST_CHECK;
