/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the walk over two views. */
#include "tree/compare.h"

#include <assert.h>
#include <string.h>

#include "base/own.h"
#include "base/path.h"
#include "tree/roster.h"

static const char *const words[] = {
    [COMPARE_ADDED] = "added", [COMPARE_CHANGED] = "changed", [COMPARE_DELETED] = "deleted", [COMPARE_MODE] = "mode",
    [COMPARE_LINK] = "link",   [COMPARE_TYPE] = "type",       [COMPARE_TROUBLE] = "trouble", [COMPARE_SAME] = "same",
};
static_assert(sizeof(words) / sizeof(words[0]) == COMPARE_WHAT_COUNT, "a word for every difference");

const char *compare_word(enum compare_what what)
{
    return (unsigned)what < COMPARE_WHAT_COUNT ? words[what] : "trouble";
}

/* A folder on the way down. */
struct frame {
    struct frame *up;
    struct roster names;
    size_t next;
    size_t path_len; /* of the walk's path: this folder's */
    struct view_stack was, is;
    bool leaves; /* to be told again in the end, as this */
    struct compare_record record;
};

struct run {
    const struct compare *c;
    struct frame *top;
    size_t budget;
    uint16_t common; /* sources below this number are the same folder in both */
    char path[PATH_BYTES_MAX];
};

static void pop(struct run *w)
{
    struct frame *f = w->top;
    w->top = f->up;
    w->budget += f->names.cost;
    roster_done(&f->names);
    free(f);
}

static int tell_trouble(struct run *w, const struct pale_err *why, struct pale_err *e)
{
    struct compare_record r = {.path = w->path, .what = COMPARE_TROUBLE, .trouble = why};
    return w->c->tell(w->c->arg, &r, e);
}

/* How many sources, from the base up, are the same folders. */
static int count_common(struct run *w, struct pale_err *e)
{
    const struct view *a = w->c->was_view, *b = w->c->is_view;
    size_t most = (a->layer_count < b->layer_count ? a->layer_count : b->layer_count) + 1;
    w->common = 0;
    while (w->common < most) {
        struct stat x = {0}, y = {0};
        int fd = view_fd(a, w->common), other = view_fd(b, w->common);
        if (fd != other && (fd < 0 || other < 0))
            return 0;
        if (fd >= 0 && (fstat(fd, &x) < 0 || fstat(other, &y) < 0))
            return err_os(e, "look at a layer");
        if (x.st_dev != y.st_dev || x.st_ino != y.st_ino)
            return 0;
        w->common++;
    }
    return 0;
}

static bool has(const struct view_stack *s, uint16_t source)
{
    for (uint16_t i = 0; i < s->count; i++)
        if (s->source[i] == source)
            return true;
    return false;
}

/* Adds the names of those sources of one view that the other does not share. Sets *ret_any if there is one. */
static int list_side(struct run *w, struct frame *f, bool was, bool *ret_any, struct pale_err *e)
{
    const struct view *v = was ? w->c->was_view : w->c->is_view;
    const struct view_stack *mine = was ? &f->was : &f->is, *other = was ? &f->is : &f->was;
    for (uint16_t i = 0; i < mine->count; i++) {
        uint16_t source = mine->source[i];
        if (source < w->common && has(other, source))
            continue;
        own_fd fd = -1;
        *ret_any = true;
        int r = leaf_open_folder(view_fd(v, source), w->path, &fd, e);
        if (r == 0)
            r = roster_add_folder(&f->names, fd, &w->budget, e);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Goes into the folder at the walk's path. The frame is freed if there is nothing to do in it. */
static int push(struct run *w, struct frame *f, struct pale_err *e)
{
    bool any = false;
    f->up = w->top;
    f->path_len = strlen(w->path);
    w->top = f;
    int r = list_side(w, f, true, &any, e);
    if (r == 0)
        r = list_side(w, f, false, &any, e);
    roster_sort(&f->names);
    if (r < 0 || (!any && !f->leaves))
        pop(w);
    return r;
}

static int same_content(struct run *w, const struct view_place *was, const struct view_place *is, bool *ret, struct pale_err *e)
{
    own_fd a = -1, b = -1;
    *ret = false;
    if (was->leaf.st.st_size != is->leaf.st.st_size)
        return 0;
    int r = view_open(w->c->was_view, was, w->path, &a, e);
    if (r == 0)
        r = view_open(w->c->is_view, is, w->path, &b, e);
    return r == 0 ? leaf_same_bytes(a, b, ret, e) : r;
}

static int same_link(struct run *w, const struct view_place *was, const struct view_place *is, bool *ret, struct pale_err *e)
{
    own_buf a, b;
    buf_init(&a, PATH_BYTES_MAX);
    buf_init(&b, PATH_BYTES_MAX);
    int r = view_read_link(w->c->was_view, was, w->path, &a, e);
    if (r == 0)
        r = view_read_link(w->c->is_view, is, w->path, &b, e);
    *ret = r == 0 && a.len == b.len && memcmp(a.data, b.data, a.len) == 0;
    return r;
}

/* Is there a difference between two things, and which? */
static int differ(struct run *w, const struct view_place *was, const struct view_place *is, bool *ret, enum compare_what *what,
                  struct pale_err *e)
{
    const struct leaf *a = &was->leaf, *b = &is->leaf;
    bool same = true;
    int r = 0;
    *ret = true;
    if (a->kind != b->kind) {
        *what = a->kind == LEAF_NONE ? COMPARE_ADDED : b->kind == LEAF_NONE ? COMPARE_DELETED : COMPARE_TYPE;
        return 0;
    }
    *ret = false;
    if (a->kind == LEAF_NONE || (was->source == is->source && was->source < w->common))
        return 0;
    if (a->kind == LEAF_LINK) {
        r = same_link(w, was, is, &same, e);
        *what = COMPARE_LINK;
    } else {
        if (a->kind == LEAF_FILE)
            r = same_content(w, was, is, &same, e);
        else if (a->kind == LEAF_DEVICE)
            same = a->st.st_rdev == b->st.st_rdev;
        *what = same ? COMPARE_MODE : COMPARE_CHANGED;
        same = same && ((a->st.st_mode ^ b->st.st_mode) & 07777) == 0;
    }
    *ret = !same;
    return r;
}

/* Compares what stands at the walk's path in both, and goes in if it is a folder. */
static int visit(struct run *w, const struct frame *in, struct pale_err *e)
{
    struct pale_err why = {0};
    struct frame *f = calloc(1, sizeof(*f));
    if (!f)
        return err_nomem(e);
    struct compare_record *rec = &f->record;
    bool differs = false;
    rec->path = w->path;
    int r = view_child(w->c->was_view, &in->was, w->path, &rec->was, &f->was, &why);
    if (r == 0)
        r = view_child(w->c->is_view, &in->is, w->path, &rec->is, &f->is, &why);
    if (r == 0)
        r = differ(w, &rec->was, &rec->is, &differs, &rec->what, &why);
    if (r < 0) {
        free(f);
        return tell_trouble(w, &why, e);
    }
    bool is_own = rec->is.source > 0 && (rec->is.leaf.kind == LEAF_FILE || rec->is.leaf.kind == LEAF_LINK);
    if (!differs && is_own && w->c->tell_same) {
        rec->what = COMPARE_SAME;
        differs = true;
    }
    r = differs ? w->c->tell(w->c->arg, rec, e) : 0;
    if (r != 0 || f->was.count + f->is.count == 0) {
        free(f);
        return r;
    }
    f->leaves = w->c->tell_leaving && rec->was.leaf.kind == LEAF_FOLDER && rec->is.leaf.kind != LEAF_FOLDER;
    return push(w, f, &why) < 0 ? tell_trouble(w, &why, e) : 0;
}

/* Puts a name behind the path of a folder. One that is too long is told as trouble of the folder. */
static int step(struct run *w, struct frame *f, struct pale_err *e)
{
    const char *name = roster_name(&f->names, f->next++);
    size_t n = strlen(name), at = f->path_len + (f->path_len ? 1 : 0);
    struct pale_err why;
    if (at + n >= sizeof(w->path)) {
        (void)err_set(&why, PALE_LIMIT, "what lies in this folder has a path longer than %d bytes, and is not looked at",
                      PATH_BYTES_MAX - 1);
        w->path[f->path_len] = 0;
        f->next = f->names.count;
        return tell_trouble(w, &why, e);
    }
    if (f->path_len)
        w->path[f->path_len] = '/';
    memcpy(w->path + at, name, n + 1);
    return visit(w, f, e);
}

/* The frame that the walk begins with: the root, or the one name that is asked for in the folder that holds it. */
static int begin(struct run *w, struct pale_err *e)
{
    const char *under = w->c->under ? w->c->under : "";
    struct frame *f = calloc(1, sizeof(*f));
    struct view_place ignored;
    if (!f)
        return err_nomem(e);
    if (!view_is_path(under)) {
        free(f);
        return err_set(e, PALE_BAD_INPUT, "the path is not a relative one of plain names");
    }
    const char *slash = strrchr(under, '/');
    size_t n = slash ? (size_t)(slash - under) : 0;
    memcpy(w->path, under, n);
    int r = view_lookup(w->c->was_view, w->path, &ignored, &f->was, e);
    if (r == 0)
        r = view_lookup(w->c->is_view, w->path, &ignored, &f->is, e);
    if (r == 0 && *under)
        r = roster_add(&f->names, slash ? slash + 1 : under, &w->budget, e);
    if (r < 0 || *under) {
        f->path_len = n;
        w->top = f;
        return r;
    }
    return push(w, f, e);
}

int compare_run(const struct compare *c, struct pale_err *e)
{
    struct run w = {.c = c, .budget = TREE_NAMES_BYTES_MAX};
    int r = count_common(&w, e);
    if (r == 0)
        r = begin(&w, e);
    while (r == 0 && w.top) {
        struct frame *f = w.top;
        if (f->next < f->names.count) {
            r = step(&w, f, e);
            continue;
        }
        w.path[f->path_len] = 0;
        if (f->leaves) {
            f->record.leaving = true;
            r = c->tell(c->arg, &f->record, e);
        }
        pop(&w);
    }
    while (w.top)
        pop(&w);
    return r;
}
