/* SPDX-License-Identifier: Apache-2.0 */
/* Folders of layers. Those of a user's box lie in layers/ID of its data folder, those of a project's box in its state folder, out of
 * reach for whoever may write in the project; those that several boxes stand on lie in .layers/ID beside, where each of these boxes can be
 * removed without the others. Nothing in them is ever followed as a link. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/own.h"
#include "box/place.h"
#include "policy/policy.h"
#include "tier/wall.h"

/* Where the layer is: an absolute path. PALE_NOT_FOUND if it is nowhere. */
int layerdir_path(const struct place *p, const char *id, char *ret, size_t cap, struct pale_err *e) MUST_CHECK;

/* PALE_CORRUPT if the folder of the layer says that another than maker has made it. */
int layerdir_check_maker(const struct place *p, const char *id, const char *maker, struct pale_err *e) MUST_CHECK;

/* Has the box any layer of its own but this one? */
int layerdir_has_others(const struct place *p, const char *id, bool *ret, struct pale_err *e) MUST_CHECK;

/* Opens one part of it; flags: O_RDONLY or O_PATH. *ret is -1 if the layer has none of it. PALE_NOT_FOUND if it is nowhere itself. */
int layerdir_open_part(const struct place *p, const char *id, enum wall_part part, int flags, int *ret, struct pale_err *e) MUST_CHECK;

/* Gives the box the project that holds its limits.disk, if it has one, before there is any layer of it; afterwards sets the limit anew.
 * PALE_UNSUPPORTED, with the remedy, where it cannot be held. */
int layerdir_allot(const struct place *p, const struct policy *policy, struct pale_err *e) MUST_CHECK;

/* Makes the folder of an open layer, with a place for each part that a box of this policy has; what is there already stays, if it is ours.
 * still: nothing runs in the box, so that there may be room for it even if the box is full. */
int layerdir_make(const struct place *p, const char *id, const struct policy *policy, bool still, struct pale_err *e) MUST_CHECK;

/* The same with a place for every part there is, and none for the kernel: of a layer that is made by us, and closed from the start. */
int layerdir_make_whole(const struct place *p, const char *id, struct pale_err *e) MUST_CHECK;

/* Makes the folder of a closed layer of parts that are ready elsewhere, on the same file system: those of from_fd that take says. They are
 * moved, or, if the box's files are counted, copied within its limit. */
int layerdir_adopt(const struct place *p, const char *id, const struct policy *policy, int from_fd, const bool take[PART_COUNT],
                   struct pale_err *e) MUST_CHECK;

/* Removes the folder of a layer of this box alone. */
int layerdir_remove(const struct place *p, const char *id, struct pale_err *e) MUST_CHECK;

/* Is there nothing in any of its parts? */
int layerdir_is_empty(const struct place *p, const char *id, bool *ret, struct pale_err *e) MUST_CHECK;

/* Is there something in this part of it? A layer that is nowhere has nothing. */
int layerdir_has(const struct place *p, const char *id, enum wall_part part, bool *ret, struct pale_err *e) MUST_CHECK;

/* Takes what only the kernel needed out of a layer that is closed, or being closed. */
int layerdir_settle(const struct place *p, const char *id, struct pale_err *e) MUST_CHECK;

/* Its folder is on the disk when this returns, so that a list may name it; what it holds may still be on its way. */
int layerdir_keep(const struct place *p, const char *id, struct pale_err *e) MUST_CHECK;
/* What there is to sync for that: the folder, and the one it is in. */
#define LAYERDIR_KEPT 2
int layerdir_open_kept(const struct place *p, const char *id, int ret[LAYERDIR_KEPT], struct pale_err *e) MUST_CHECK;

/* Where the layers are that several boxes stand on. While it is held nobody removes one from there. */
struct layerdir_pool {
    int fd[2];
};
#define own_layerdir_pool CLEANUP(layerdir_let_go) struct layerdir_pool
int layerdir_hold_shared(const struct place *p, struct layerdir_pool *ret, struct pale_err *e) MUST_CHECK;
void layerdir_let_go(struct layerdir_pool *l);

/* Moves a closed layer to there; it may be there already. A name that is taken there by another is an error. */
int layerdir_share(const struct place *p, const struct layerdir_pool *l, const char *id, struct pale_err *e) MUST_CHECK;
/* Those that were moved are there on the disk too. */
int layerdir_keep_shared(const struct layerdir_pool *l, struct pale_err *e) MUST_CHECK;

/* How many folders were removed, or, if only_counts, would be. */
struct layerdir_swept {
    bool only_counts;
    unsigned count;
};

/* Removes every folder of a layer of this box alone that keep does not want. ret->count grows. */
typedef bool layerdir_wanted(const void *arg, const char *id);
int layerdir_sweep(const struct place *p, layerdir_wanted *keep, const void *arg, struct layerdir_swept *ret,
                   struct pale_err *e) MUST_CHECK;

/* The same for those that several boxes stand on: find is called when nobody can add one, maybe twice, and learns what all boxes beside p
 * need. The folder goes if nothing is left in it. */
struct layerdir_users {
    int (*find)(void *arg, struct pale_err *e);
    layerdir_wanted *wanted;
    void *arg;
};
int layerdir_sweep_shared(const struct place *p, const struct layerdir_users *u, struct layerdir_swept *ret, struct pale_err *e) MUST_CHECK;
