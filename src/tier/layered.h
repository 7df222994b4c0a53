/* SPDX-License-Identifier: Apache-2.0 */
/* The layers under a box's writable places: closed ones, and an open one on top that takes all writes, joined by the kernel's overlay
 * file system. A box never sees a layer but through the overlay, so that no name or attribute in it is the box's to forge. */
#pragma once

#include "base/err.h"
#include "tier/wall.h"

/* Detached copies of the folders of layers, opened while the host is in view. */
struct layered {
    int open_fd; /* writable; -1: the open layer is in memory */
    int closed_fd[WALL_LAYERS_MAX];
    size_t closed;
    int base_fd[PART_COUNT]; /* the host's folder that lies under all layers of a part; -1: nothing does */
    /* Waits until the layers may be joined: another box may still have the open one, or work in one that is to be closed. */
    int (*await)(void *arg, struct pale_err *e);
    void *arg;
};

void layered_init(struct layered *l);
void layered_done(struct layered *l);

/* Opens what the plan names. idmap_fd: as in lend_clone. */
int layered_open(const struct wall_plan *plan, int idmap_fd, struct layered *l, struct pale_err *e) MUST_CHECK;

/* In the builder: joins the layers of each part that the box has, once they are to be had. root is the box's root, attached already;
 * memory_fd, attached too, takes the open layer if it is in memory. ret[part] is the joined tree, detached, or -1; on failure too they are
 * the caller's. */
int layered_join(const struct wall_plan *plan, struct layered *l, int root, int memory_fd, int ret[PART_COUNT],
                 struct pale_err *e) MUST_CHECK;
