/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the root of a box that has an image.
 *
 * How it works: a porch (a tmpfs with the usual skeleton) is attached where a root would be; on it the layers are joined, and the joined
 * root is attached at one of its folders. What an image holds is foreign, and what a box made of it is hostile: every place is reached
 * without following a symlink, and one that is none (a /dev that is a link) is an error. Places that are missing are made, in the box's
 * open layer. /dev is a small file system of its own, for the root takes no devices. */
#include "tier/imageroot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "confine/mounts.h"
#include "tier/etc.h"

#define PORCH_ROOT "var" /* where on the porch the root is attached */

/* What every root must have as a folder. */
static const char *const places[] = {"proc", "dev", "run", "tmp", "etc", "root", "home/agent"};

struct making {
    int root;
    const struct root_sources *sources;
    size_t own_files;
};

/* A plain file to lay one of ours over; whatever else has its name, a link mostly, is the box's no longer. */
static int make_own_place(int etc, const char *name, struct pale_err *e)
{
    struct stat st;
    if (fstatat(etc, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
        return 0;
    if (unlinkat(etc, name, 0) < 0 && errno != ENOENT)
        return err_os(e, "replace /etc/%s of the image", name);
    return mknodat(etc, name, S_IFREG | 0644, 0) < 0 ? err_os(e, "make /etc/%s of the box", name) : 0;
}

static int make_places(void *arg, struct pale_err *e)
{
    const struct making *m = arg;
    int r = 0;
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        own_fd dir = root_make_dirs(m->root, places[i], strlen(places[i]), e);
        if (dir < 0)
            return err_prefix(e, "the image's /%s is no folder", places[i]);
    }
    own_fd etc = fd_open_beneath(m->root, "etc", O_RDONLY | O_DIRECTORY, 0);
    if (etc < 0)
        return err_os(e, "open /etc of the image");
    for (size_t i = 0; r == 0 && i < m->own_files; i++)
        r = make_own_place(etc, etc_own_names[i], e);
    return r < 0 ? r : root_make_mount_points(m->root, m->sources, false, e);
}

/* Those below /tmp and the like, once these are there. */
static int make_later_places(void *arg, struct pale_err *e)
{
    const struct making *m = arg;
    return root_make_mount_points(m->root, m->sources, true, e);
}

/* A /dev on its own file system, with an empty folder besides. */
static int make_dev(const struct wall_plan *plan, int root, struct pale_err *e)
{
    own_fd whole = mounts_tmpfs(1 << 20, 256, 0755, e);
    int r = whole < 0 ? whole : root_make_skeleton(whole, e);
    if (r == 0 && mkdirat(whole, &IMAGEROOT_EMPTY[1], 0555) < 0)
        r = err_os(e, "make an empty folder");
    /* A part of it can be taken only once it is attached: on the place itself, which it then hides. */
    if (r == 0)
        r = mounts_attach(whole, root, "dev", e);
    own_fd dev = r < 0 ? r : mounts_copy(whole, "dev", e);
    if (dev < 0)
        return dev;
    if ((r = mounts_restrict(dev, MOUNTS_NOEXEC, e)) == 0 && (r = mounts_attach(dev, root, "dev", e)) == 0)
        r = root_make_dev(plan, root, e);
    return r == 0 ? mounts_restrict(dev, MOUNTS_NOEXEC | MOUNTS_RO, e) : r;
}

static int lay_own_files(const struct wall_plan *plan, int porch, int root, struct pale_err *e)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < etc_own_files(plan); i++) {
        char target[64];
        snprintf(target, sizeof(target), "etc/%s", etc_own_names[i]);
        own_fd tree = root_own_file(plan, porch, i, e);
        if (tree < 0 || (r = mounts_restrict(tree, MOUNTS_RO, e)) < 0)
            return tree < 0 ? tree : r;
        r = mounts_attach(tree, root, target, e);
    }
    return r;
}

int imageroot_build(const struct wall_plan *plan, struct root_sources *s, int porch, int joined[PART_COUNT], struct pale_err *e)
{
    int r;
    if ((r = root_make_skeleton(porch, e)) < 0 || (r = root_hang(porch, e)) < 0)
        return r;
    own_fd scratch = root_make_scratch(plan, porch, e);
    if (scratch < 0 || (r = layered_join(plan, &s->layers, porch, scratch, joined, e)) < 0)
        return scratch < 0 ? scratch : r;
    int root = joined[PART_ROOT];
    struct making m = {.root = root, .sources = s, .own_files = etc_own_files(plan)};
    if ((r = mounts_place(root, porch, PORCH_ROOT, e)) < 0 || (r = root_as_user(plan, make_places, &m, e)) < 0)
        return r;
    if ((r = make_dev(plan, root, e)) < 0 || (r = lay_own_files(plan, porch, root, e)) < 0)
        return r;
    if ((r = root_attach_scratch(plan, root, scratch, joined, e)) < 0)
        return r;
    if (s->count > 0 && (r = root_as_user(plan, make_later_places, &m, e)) < 0)
        return r;
    return root_attach_user_mounts(plan, root, s, joined[PART_PROJECT], e);
}
