/* SPDX-License-Identifier: Apache-2.0 */
/* A tree as a box saw it: a base and the layers over it, looked at without mounting or copying anything.
 *
 * How it works: sources are counted from the base (0) up to the open layer. In a folder, a name is looked for from the top down; a whiteout
 * or anything that is no folder ends the search, and so does an opaque folder. The folders found on the way make the stack of the merged
 * folder: where its names come from. The base may be the user's own tree, so no marks are read in it. */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "base/limits.h"
#include "tree/leaf.h"

struct view {
    int base_fd;          /* -1: empty */
    const int *layer_fds; /* the oldest first; all of them the caller's */
    size_t layer_count;   /* at most TREE_LAYERS_MAX */
};

/* Sources of a merged folder, the topmost first. */
struct view_stack {
    uint16_t count;
    uint16_t source[TREE_LAYERS_MAX + 1];
};

/* What a path means in the view. */
struct view_place {
    struct leaf leaf; /* of the topmost source; LEAF_NONE if the view has nothing there, and never LEAF_WHITEOUT */
    uint16_t source;  /* that one */
};

/* The stack of the root. PALE_BAD_INPUT if there are too many layers. */
int view_root(const struct view *v, struct view_stack *ret, struct pale_err *e) MUST_CHECK;

/* Looks up path, whose last name lies in the folder that parent is the stack of; ret_stack (empty unless it is a folder) is its own. */
int view_child(const struct view *v, const struct view_stack *parent, const char *path, struct view_place *ret,
               struct view_stack *ret_stack, struct pale_err *e) MUST_CHECK;

/* The same for any relative path, normal and without "..", from the root; "" is the root itself. */
int view_lookup(const struct view *v, const char *path, struct view_place *ret, struct view_stack *ret_stack,
                struct pale_err *e) MUST_CHECK;

/* The oldest layer that says something about path, as a source; 0 if none does, or only the base. */
int view_oldest(const struct view *v, const char *path, uint16_t *ret, struct pale_err *e) MUST_CHECK;

/* The root descriptor of a source. */
int view_fd(const struct view *v, uint16_t source);

/* Opens the content of a file that was found at a place, for reading. */
int view_open(const struct view *v, const struct view_place *at, const char *path, int *ret_fd, struct pale_err *e) MUST_CHECK;
int view_read_link(const struct view *v, const struct view_place *at, const char *path, struct buf *out, struct pale_err *e) MUST_CHECK;

/* A relative path of names, no ".", "..", empty step or NUL, shorter than PATH_BYTES_MAX; "" is the root. */
bool view_is_path(const char *path);
