/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the walk down one tree. */
#include "tree/descent.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

struct descent_frame {
    struct descent_frame *up;
    struct roster names;
    size_t next, path_len;
    struct leaf leaf;
};

void descent_init(struct descent *d, int root_fd, bool marks)
{
    *d = (struct descent){.root_fd = root_fd, .marks = marks, .budget = TREE_NAMES_BYTES_MAX, .fd = -1};
}

static void pop(struct descent *d)
{
    struct descent_frame *f = d->top;
    d->top = f->up;
    d->budget += f->names.cost;
    roster_done(&f->names);
    free(f);
}

void descent_done(struct descent *d)
{
    while (d->top)
        pop(d);
    own_close(&d->fd);
}

/* Goes into the folder at the path. */
static int push(struct descent *d, const struct leaf *leaf, struct pale_err *e)
{
    own_fd fd = -1;
    int r = leaf_open_folder(d->root_fd, d->path, &fd, e);
    if (r < 0)
        return r;
    struct descent_frame *f = calloc(1, sizeof(*f));
    if (!f)
        return err_nomem(e);
    f->up = d->top;
    f->path_len = strlen(d->path);
    f->leaf = *leaf;
    d->top = f;
    r = roster_add_folder(&f->names, fd, &d->budget, e);
    roster_sort(&f->names);
    if (r < 0)
        pop(d);
    return r;
}

static int not_looked(struct pale_err *e)
{
    if (errno == ELOOP || errno == EXDEV || errno == EAGAIN)
        return err_set(e, PALE_BUSY, "a folder on the way was changed meanwhile");
    return err_os(e, "look at what a box wrote");
}

/* Looks at one name of the folder that the walk is in: 1 with a step, 0 if it is gone. */
static int look(struct descent *d, const char *name, struct descent_step *ret)
{
    struct descent_frame *f = d->top;
    size_t n = strlen(name), at = f->path_len + (f->path_len ? 1 : 0);
    *ret = (struct descent_step){.path = d->path, .fd = -1};
    if (at + n >= sizeof(d->path)) {
        (void)err_set(&d->why, PALE_LIMIT, "what lies in this folder has a path longer than %d bytes", PATH_BYTES_MAX - 1);
        f->next = f->names.count;
        ret->trouble = &d->why;
        return 1;
    }
    if (f->path_len)
        d->path[f->path_len] = '/';
    memcpy(d->path + at, name, n + 1);
    d->fd = fd_open_beneath(d->root_fd, d->path, O_PATH | O_NOFOLLOW, 0);
    if (d->fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return 0;
    int r = d->fd < 0 ? not_looked(&d->why) : leaf_look_fd(d->fd, d->path, d->marks, &ret->leaf, &d->why);
    if (r == 0 && ret->leaf.kind == LEAF_FOLDER)
        r = push(d, &ret->leaf, &d->why);
    ret->fd = r < 0 ? -1 : d->fd;
    ret->trouble = r < 0 ? &d->why : NULL;
    return 1;
}

int descent_begin(struct descent *d, struct pale_err *e)
{
    struct leaf root = {.kind = LEAF_FOLDER};
    int r = !d->begun && d->marks ? leaf_look(d->root_fd, "", true, &root, e) : 0;
    if (r == 0 && !d->begun)
        r = push(d, &root, e);
    d->begun = d->begun || r == 0;
    return r;
}

int descent_next(struct descent *d, struct descent_step *ret, struct pale_err *e)
{
    int r = descent_begin(d, e);
    if (r < 0)
        return r;
    while (d->top) {
        struct descent_frame *f = d->top;
        d->path[f->path_len] = 0;
        own_close(&d->fd);
        if (f->next < f->names.count) {
            if (look(d, roster_name(&f->names, f->next++), ret) == 0)
                continue;
            if (ret->trouble && d->why.code == PALE_NO_MEMORY)
                return err_nomem(e);
            return 1;
        }
        *ret = (struct descent_step){.path = d->path, .fd = -1, .leaf = f->leaf, .leaving = true};
        pop(d);
        if (d->top)
            return 1;
    }
    return 0;
}

const struct leaf *descent_folder(const struct descent *d)
{
    return &d->top->leaf;
}

bool descent_has(const struct descent *d, const char *name)
{
    const struct roster *l = &d->top->names;
    size_t low = 0, high = l->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(roster_name(l, middle), name);
        if (order == 0)
            return true;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}
