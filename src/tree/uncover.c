/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the way of a path of the base through a layer that hides it. */
#include "tree/uncover.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/own.h"
#include "base/quote.h"
#include "tree/leaf.h"
#include "tree/roster.h"

#define OPAQUE_NAME "user.overlay.opaque"

/* A folder on the way, and the next step from there. */
struct stop {
    int base_fd, layer_fd;
    char path[PATH_BYTES_MAX];
    const char *next;
    size_t next_len;
    struct leaf below, above; /* what the base and the layer have there */
};

static int fail(const struct stop *s, const char *what, struct pale_err *e)
{
    char shown[200];
    return err_os(e, "%s %s of a layer", what, quote_into(shown, sizeof(shown), s->path, strlen(s->path)));
}

/* The folder that holds the last name of path, and that name. */
static int open_above(int root_fd, const char *path, const char **ret_name)
{
    char folder[PATH_BYTES_MAX];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
    *ret_name = slash ? slash + 1 : path;
    return fd_open_beneath(root_fd, folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
}

/* A folder whose owner may not write to it takes no marks. */
static int make_opaque(int dir, const char *name, mode_t mode)
{
    if (fchmodat(dir, name, 0700, 0) < 0)
        return -1;
    own_fd fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 || fsetxattr(fd, OPAQUE_NAME, "y", 1, 0) < 0 || fchmod(fd, mode & 07777) < 0 ? -1 : 0;
}

/* Hides, one by one, what the base has in the folder and the layer's folder, fd, does not show; but for the next step. */
static int hide_others(const struct stop *s, int fd, struct pale_err *e)
{
    own_roster names = {0};
    own_fd base = -1;
    size_t budget = TREE_NAMES_BYTES_MAX;
    int r = leaf_open_folder(s->base_fd, s->path, &base, e);
    if (r == 0)
        r = roster_add_folder(&names, base, &budget, e);
    roster_sort(&names);
    for (size_t i = 0; r == 0 && i < names.count; i++) {
        struct stat st;
        const char *name = roster_name(&names, i);
        if (strlen(name) == s->next_len && memcmp(name, s->next, s->next_len) == 0)
            continue;
        bool is_there = fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
        if (!is_there && (errno != ENOENT || mknodat(fd, name, S_IFCHR, makedev(0, 0)) < 0))
            r = fail(s, "hide what lies in folder", e);
        if (is_there && S_ISDIR(st.st_mode) && make_opaque(fd, name, st.st_mode) < 0)
            r = fail(s, "mark a folder in folder", e);
    }
    return r;
}

static int open_up(const struct stop *s, struct pale_err *e)
{
    const char *name;
    mode_t mode = (s->above.kind == LEAF_FOLDER ? s->above.st.st_mode : s->below.st.st_mode) & 0777;
    own_fd dir = open_above(s->layer_fd, s->path, &name);
    if (dir < 0)
        return fail(s, "open the folder above", e);
    if (s->above.kind == LEAF_WHITEOUT && unlinkat(dir, name, 0) < 0)
        return fail(s, "show", e);
    if (s->above.kind == LEAF_FOLDER ? fchmodat(dir, name, 0700, 0) < 0 : mkdirat(dir, name, 0700) < 0)
        return fail(s, "make folder", e);
    own_fd fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return fail(s, "open folder", e);
    int r = hide_others(s, fd, e);
    if (r == 0 && s->above.opaque && fremovexattr(fd, OPAQUE_NAME) < 0)
        r = fail(s, "open up folder", e);
    if (r == 0 && fchmod(fd, mode) < 0)
        r = fail(s, "set the mode of folder", e);
    return r;
}

/* What was hidden by its own mark. */
static int show_last(int layer_fd, const char *path, struct pale_err *e)
{
    struct leaf above;
    const char *name;
    char shown[200];
    int r = leaf_look(layer_fd, path, true, &above, e);
    if (r < 0 || above.kind != LEAF_WHITEOUT)
        return r;
    own_fd dir = open_above(layer_fd, path, &name);
    return dir < 0 || unlinkat(dir, name, 0) < 0 ? err_os(e, "show %s", quote_into(shown, sizeof(shown), path, strlen(path))) : 0;
}

static int look(struct stop *s, struct pale_err *e)
{
    int r = leaf_look(s->base_fd, s->path, false, &s->below, e);
    return r < 0 ? r : leaf_look(s->layer_fd, s->path, true, &s->above, e);
}

int uncover_path(int base_fd, int layer_fd, const char *path, struct pale_err *e)
{
    struct stop s = {.base_fd = base_fd, .layer_fd = layer_fd};
    bool hidden = false;
    char shown[200];
    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(s.path, sizeof(s.path), "%.*s", (int)(slash - path), path);
        s.next = slash + 1;
        s.next_len = strcspn(s.next, "/");
        int r = look(&s, e);
        if (r < 0)
            return r;
        if (s.below.kind != LEAF_FOLDER || (s.above.kind == LEAF_NONE && !hidden))
            return 0; /* the base has nothing there, or the layer nothing to say about it */
        if (s.above.kind != LEAF_NONE && s.above.kind != LEAF_WHITEOUT && s.above.kind != LEAF_FOLDER)
            return err_set(e, PALE_BAD_INPUT, "%s is no folder in the box: throw that away, and what was below it is there again",
                           quote_into(shown, sizeof(shown), s.path, strlen(s.path)));
        /* Below a folder that hid everything the layer's own folders did so too, without a mark. */
        hidden = hidden || s.above.kind != LEAF_FOLDER || s.above.opaque;
        if (hidden && (r = open_up(&s, e)) < 0)
            return r;
    }
    return show_last(layer_fd, path, e);
}
