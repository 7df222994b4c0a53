/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the welding of layers.
 *
 * How it works: folders that are still to be filled stand in a list, each with its path and the layers that have a say in it. One is taken;
 * the names of its layers are gone through from the top layer down, and the first that has a name decides. A folder among them is made,
 * and put on the list with those layers below that go on being seen through it. */
#include "tree/weld.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/attributes.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/own.h"
#include "base/quote.h"
#include "tree/leaf.h"
#include "tree/roster.h"

#define OPAQUE_NAME "user.overlay.opaque"

/* A folder that is still to be filled. */
struct task {
    struct task *next;
    size_t source_count;
    uint16_t *sources; /* layers, the highest first */
    char path[];       /* "": the root */
};

struct weld {
    const int *layer_fds;
    int to_fd;
    const char *const *without; /* paths that are left out, sorted */
    size_t without_count;
    struct task *tasks;
    size_t budget;
};

static void tasks_free(struct weld *w)
{
    while (w->tasks) {
        struct task *t = w->tasks;
        w->tasks = t->next;
        free(t->sources);
        free(t);
    }
}

static int fail(struct pale_err *e, const char *what, const char *path)
{
    char shown[200];
    quote_into(shown, sizeof(shown), path, strlen(path));
    return err_os(e, "%s %s of a layer", what, shown);
}

static int open_folder(int root_fd, const char *path)
{
    return fd_open_beneath(root_fd, *path ? path : ".", O_RDONLY | O_DIRECTORY, 0);
}

/* Puts a folder on the list with every layer from `from` on that is seen through the ones above it. *ret_mark: what is to be written on it
 * ("y": it hides all below; "x": it may hold whiteouts that are files), or NULL. */
static int push(struct weld *w, const uint16_t *sources, size_t count, const char *path, const char **ret_mark, struct pale_err *e)
{
    size_t n = strlen(path);
    struct task *t = malloc(sizeof(*t) + n + 1);
    uint16_t *list = calloc(count, sizeof(*list));
    if (!t || !list) {
        free(t);
        free(list);
        return err_nomem(e);
    }
    *t = (struct task){.next = w->tasks, .sources = list};
    memcpy(t->path, path, n + 1);
    w->tasks = t;
    *ret_mark = NULL;
    for (size_t i = 0; i < count; i++) {
        struct leaf leaf;
        int r = leaf_look(w->layer_fds[sources[i]], path, true, &leaf, e);
        if (r < 0)
            return r;
        if (leaf.kind == LEAF_NONE)
            continue;
        if (leaf.kind != LEAF_FOLDER) { /* what was there before the folder is hidden by it */
            *ret_mark = "y";
            break;
        }
        list[t->source_count++] = sources[i];
        if (leaf.has_whiteouts && !*ret_mark)
            *ret_mark = "x";
        if (leaf.opaque) {
            *ret_mark = "y";
            break;
        }
    }
    return 0;
}

/* Those that are a user's own. */
static int copy_attributes(int layer_fd, const char *path, int to_fd, struct pale_err *e)
{
    own_buf text = {0};
    own_fd from = fd_open_beneath(layer_fd, path, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
    buf_init(&text, 2 * ATTRIBUTES_BYTES_MAX);
    if (from < 0)
        return fail(e, "open folder", path);
    int r = attributes_read(from, &text, e);
    return r < 0 ? r : attributes_set(to_fd, text.data, text.len, e);
}

static int make_folder(struct weld *w, int out, const char *name, const char *path, const uint16_t *sources, size_t count,
                       struct pale_err *e)
{
    const char *mark;
    if (mkdirat(out, name, 0700) < 0)
        return fail(e, "make folder", path);
    int r = push(w, sources, count, path, &mark, e);
    if (r < 0)
        return r;
    own_fd fd = openat(out, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && (r = copy_attributes(w->layer_fds[sources[0]], path, fd, e)) < 0)
        return r;
    return fd < 0 || (mark && fsetxattr(fd, OPAQUE_NAME, mark, 1, 0) < 0) ? fail(e, "mark folder", path) : 0;
}

/* One name, of the highest layer that has it; sources begins with that. */
static int take_name(struct weld *w, int in, int out, const char *path, const char *name, const uint16_t *sources, size_t count,
                     struct pale_err *e)
{
    struct leaf leaf;
    int r = leaf_look(w->layer_fds[sources[0]], path, true, &leaf, e);
    if (r < 0)
        return r;
    if (leaf.kind == LEAF_FOLDER)
        return make_folder(w, out, name, path, sources, count, e);
    return linkat(in, name, out, name, 0) < 0 ? fail(e, "link", path) : 0;
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_left_out(const struct weld *w, const char *path)
{
    return w->without_count > 0 && bsearch(&path, w->without, w->without_count, sizeof(path), compare_paths);
}

static int fill_from(struct weld *w, const struct task *t, size_t source, int out, struct pale_err *e)
{
    own_roster names = {0};
    char path[PATH_BYTES_MAX];
    own_fd in = open_folder(w->layer_fds[t->sources[source]], t->path);
    if (in < 0)
        return fail(e, "open folder", t->path);
    int r = roster_add_folder(&names, in, &w->budget, e);
    roster_sort(&names);
    for (size_t i = 0; r == 0 && i < names.count; i++) {
        struct stat st;
        const char *name = roster_name(&names, i);
        int n = snprintf(path, sizeof(path), "%s%s%s", t->path, *t->path ? "/" : "", name);
        if (n < 0 || (size_t)n >= sizeof(path))
            return err_set(e, PALE_LIMIT, "a path of a layer is longer than %d bytes", PATH_BYTES_MAX);
        if (is_left_out(w, path) || fstatat(out, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
            continue; /* a higher layer had it */
        r = take_name(w, in, out, path, name, t->sources + source, t->source_count - source, e);
    }
    w->budget += names.cost;
    return r;
}

/* Mode and times are the topmost layer's, and come last: a closed folder takes no names, and each that is put into one changes its times.
 */
static int fill(struct weld *w, const struct task *t, struct pale_err *e)
{
    struct leaf top;
    own_fd out = open_folder(w->to_fd, t->path);
    if (out < 0)
        return fail(e, "open the new folder", t->path);
    int r = 0;
    for (size_t i = 0; r == 0 && i < t->source_count; i++)
        r = fill_from(w, t, i, out, e);
    if (r == 0 && t->source_count)
        r = leaf_look(w->layer_fds[t->sources[0]], t->path, false, &top, e);
    if (r < 0 || !t->source_count)
        return r;
    const struct timespec times[2] = {top.st.st_atim, top.st.st_mtim};
    return fchmod(out, top.st.st_mode & 07777) < 0 || futimens(out, times) < 0 ? fail(e, "set mode and times of", t->path) : 0;
}

int weld_run(const int *layer_fds, size_t count, int to_fd, struct pale_err *e)
{
    return weld_without(layer_fds, count, NULL, 0, to_fd, e);
}

int weld_without(const int *layer_fds, size_t count, const char *const *paths, size_t path_count, int to_fd, struct pale_err *e)
{
    struct weld w = {.layer_fds = layer_fds, .to_fd = to_fd, .without = paths, .without_count = path_count, .budget = TREE_NAMES_BYTES_MAX};
    const char *mark;
    own_mem uint16_t *all = calloc(count + 1, sizeof(*all));
    if (!all)
        return err_nomem(e);
    for (size_t i = 0; i < count; i++)
        all[i] = (uint16_t)i;
    int r = count < 1 || count > TREE_LAYERS_MAX ? err_set(e, PALE_BAD_INPUT, "1 to %d layers are welded", TREE_LAYERS_MAX)
                                                 : push(&w, all, count, "", &mark, e);
    if (r == 0 && mark && fsetxattr(to_fd, OPAQUE_NAME, mark, 1, 0) < 0)
        r = err_os(e, "mark a layer");
    while (r == 0 && w.tasks) {
        struct task *t = w.tasks;
        w.tasks = t->next;
        r = fill(&w, t, e);
        free(t->sources);
        free(t);
    }
    tasks_free(&w);
    return r;
}
