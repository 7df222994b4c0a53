/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the meaning of a path in a pile of layers. */
#include "tree/view.h"

#include <string.h>

int view_fd(const struct view *v, uint16_t source)
{
    return source == 0 ? v->base_fd : v->layer_fds[source - 1];
}

int view_root(const struct view *v, struct view_stack *ret, struct pale_err *e)
{
    if (v->layer_count > TREE_LAYERS_MAX)
        return err_set(e, PALE_BAD_INPUT, "%zu layers are more than %d; merge some first", v->layer_count, TREE_LAYERS_MAX);
    ret->count = 0;
    for (size_t i = v->layer_count; i > 0; i--)
        ret->source[ret->count++] = (uint16_t)i;
    if (v->base_fd >= 0)
        ret->source[ret->count++] = 0;
    return 0;
}

/* An empty file that says it is a whiteout is one only where its folder says that there are such. */
static int is_deleted(int root_fd, const char *path, const struct leaf *l, bool *ret, struct pale_err *e)
{
    char folder[PATH_BYTES_MAX];
    struct leaf above;
    *ret = l->kind == LEAF_WHITEOUT;
    if (!l->marked_deleted)
        return 0;
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 0;
    memcpy(folder, path, n);
    folder[n] = 0;
    int r = leaf_look(root_fd, folder, true, &above, e);
    *ret = r == 0 && above.has_whiteouts;
    return r;
}

int view_child(const struct view *v, const struct view_stack *parent, const char *path, struct view_place *ret,
               struct view_stack *ret_stack, struct pale_err *e)
{
    struct view_place found = {.leaf = {.kind = LEAF_NONE}};
    ret_stack->count = 0;
    for (uint16_t i = 0; i < parent->count; i++) {
        uint16_t source = parent->source[i];
        struct leaf l;
        bool deleted = false;
        int r = leaf_look(view_fd(v, source), path, source != 0, &l, e);
        if (r == 0 && l.kind == LEAF_NONE)
            continue;
        if (r == 0)
            r = is_deleted(view_fd(v, source), path, &l, &deleted, e);
        if (r < 0)
            return r;
        if (deleted || (l.kind != LEAF_FOLDER && found.leaf.kind != LEAF_NONE))
            break;
        if (found.leaf.kind == LEAF_NONE)
            found = (struct view_place){l, source};
        if (l.kind != LEAF_FOLDER)
            break;
        ret_stack->source[ret_stack->count++] = source;
        if (l.opaque)
            break;
    }
    *ret = found;
    return 0;
}

int view_lookup(const struct view *v, const char *path, struct view_place *ret, struct view_stack *ret_stack, struct pale_err *e)
{
    char part[PATH_BYTES_MAX];
    struct view_stack parent;
    int r = view_root(v, ret_stack, e);
    *ret = (struct view_place){.leaf = {.kind = LEAF_NONE}};
    if (r == 0 && ret_stack->count > 0 && !*path) {
        ret->source = ret_stack->source[0];
        r = leaf_look(view_fd(v, ret->source), "", false, &ret->leaf, e);
    }
    for (size_t end = 0; r == 0 && path[end];) {
        end += path[end] == '/' ? 1 : 0;
        end += strcspn(path + end, "/");
        memcpy(part, path, end);
        part[end] = 0;
        parent = *ret_stack;
        r = view_child(v, &parent, part, ret, ret_stack, e);
        if (r == 0 && path[end] && ret->leaf.kind != LEAF_FOLDER) {
            *ret = (struct view_place){.leaf = {.kind = LEAF_NONE}};
            ret_stack->count = 0;
            return 0;
        }
    }
    return r;
}

int view_oldest(const struct view *v, const char *path, uint16_t *ret, struct pale_err *e)
{
    *ret = 0;
    for (size_t i = 1; i <= v->layer_count; i++) {
        struct leaf l;
        int r = leaf_look(view_fd(v, (uint16_t)i), path, false, &l, e);
        if (r < 0)
            return r;
        if (l.kind != LEAF_NONE) {
            *ret = (uint16_t)i;
            return 0;
        }
    }
    return 0;
}

int view_open(const struct view *v, const struct view_place *at, const char *path, int *ret_fd, struct pale_err *e)
{
    return leaf_open(view_fd(v, at->source), path, NULL, ret_fd, e);
}

int view_read_link(const struct view *v, const struct view_place *at, const char *path, struct buf *out, struct pale_err *e)
{
    return leaf_read_link(view_fd(v, at->source), path, out, e);
}

bool view_is_path(const char *path)
{
    if (strnlen(path, PATH_BYTES_MAX) >= PATH_BYTES_MAX)
        return false;
    for (const char *at = path; *at;) {
        size_t n = strcspn(at, "/");
        if (n == 0 || n > FILE_NAME_MAX || (n == 1 && at[0] == '.') || (n == 2 && at[0] == '.' && at[1] == '.'))
            return false;
        at += n;
        if (*at == '/' && !*++at)
            return false;
    }
    return true;
}
