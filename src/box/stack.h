/* SPDX-License-Identifier: Apache-2.0 */
/* The stack of a box: which layers its writes are in, what lies under what, and the snapshots that point at them.
 *
 * How it works: closed layers never change; each knows the layer it was closed on top of, so that they form a tree, and a snapshot is
 * a name for one of them with all that lies below. The open layer takes the box's writes. All of it stands in one file of the box's
 * state folder, replaced whole: what it says holds, and a layer's folder that it does not name is litter. A box without that file has
 * never closed a layer: its only one has the box's own id as its name. Any other layer in its folders says that the file was lost, and
 * that is an error. Names of layers are 128 random bits, and each says who made it, in the list and in its folder. */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/sha256.h"
#include "box/place.h"

#define LAYER_ID_LEN 32 /* 128 bits: no two boxes ever have layers of one name */
static_assert(LAYER_ID_LEN == BOX_ID_LEN, "a box's first layer has its id");
#define SNAPSHOT_NAME_MAX 63
#define STACK_LAYERS_MAX 8192    /* twenty times the longest chain that anybody was promised */
#define STACK_SNAPSHOTS_MAX 4096 /* … and ten times */
#define STACK_RUN_MAX 256        /* layers that are joined into one: sixteen times sixteen */
#define STACK_NONE (-1)          /* under the lowest layer: nothing, or what the layers lie on */

struct stack_layer {
    char id[LAYER_ID_LEN + 1];
    int below; /* its number in the stack, or STACK_NONE */
    uint64_t closed_ms;
    char digest[SHA256_HEX];    /* of its content; "": not made yet */
    char poison[64];            /* why it is no longer used, in one word that inspection gave; "": it is good */
    bool anew;                  /* the project begins again with it: none of the layers below count for that */
    char maker[BOX_ID_LEN + 1]; /* the box that made it; "": this one */
    bool rest;                  /* … with what is left of theirs: as far as anybody looked at the user's tree, it began when they did */
};

/* A layer with the content of a run of others, made so that fewer must be joined. */
struct stack_join {
    char id[LAYER_ID_LEN + 1], maker[BOX_ID_LEN + 1];
    int first, last; /* the lowest and the highest of the run. Of the project it has what counts of the run, where that begins again */
};

struct stack_snapshot {
    char name[SNAPSHOT_NAME_MAX + 1];
    int layer; /* or STACK_NONE: the box as it was made */
    uint64_t made_ms;
    bool automatic;
};

struct stack {
    struct stack_layer *layers; /* a layer stands after the one below it */
    size_t layer_count;
    struct stack_join *joins;
    size_t join_count;
    struct stack_snapshot *snapshots; /* oldest first */
    size_t snapshot_count;
    char box[BOX_ID_LEN + 1]; /* whose it is: the maker of what is new */
    char open[LAYER_ID_LEN + 1], open_maker[BOX_ID_LEN + 1];
    int below_open;
    bool open_anew;   /* as a layer's anew */
    uint64_t named;   /* how many snapshots have been given a name by us */
    bool no_autosave; /* the operator wants no automatic snapshots */
};

/* Of no box yet, and without an open layer. */
void stack_init(struct stack *s);
void stack_done(struct stack *s);
#define own_stack CLEANUP(stack_done) struct stack

/* Text: strict, complete, and the only form. On failure ret is as stack_init leaves it. */
void stack_write(const struct stack *s, struct buf *out);
int stack_parse(const char *text, size_t len, struct stack *ret, struct pale_err *e) MUST_CHECK;

/* The stack of a box, and its replacement, which is on the disk when this returns: the instant at which a change takes place. */
int stack_load(const struct place *p, struct stack *ret, struct pale_err *e) MUST_CHECK;
int stack_save(const struct place *p, const struct stack *s, struct pale_err *e) MUST_CHECK;
/* The same once these are on the disk too. It counts when this returns, and is sure to outlast the power once *ret_state is synced. */
int stack_save_after(const struct place *p, const struct stack *s, const struct fd_after *after, int *ret_state,
                     struct pale_err *e) MUST_CHECK;

/* As it stands in the data folder of a user's box, where a copy of each list is left, so that the files of who has lost his state folder
 * are not lost. PALE_CORRUPT if it cannot be read, or says less than there is. */
int stack_load_copy(const struct place *p, struct stack *ret, struct pale_err *e) MUST_CHECK;

/* The digest of its text in this state folder. */
int stack_digest(const char *state, char ret[SHA256_HEX], struct pale_err *e) MUST_CHECK;

/* Whoever has replaced it may have been killed before it was on the disk: it is when this returns. One that is older than the box's policy,
 * open as policy_fd, has lain there since: who gives a box a policy syncs the folder. */
int stack_keep(const char *state, int policy_fd, struct pale_err *e) MUST_CHECK;

/* How long ago that was; below 0: never, or by another clock. */
int64_t stack_age_ms(const struct place *p);

/* Removes what was left by those who died while they wrote it. Needs: lock. */
int stack_sweep(const struct place *p, struct pale_err *e) MUST_CHECK;

/* One at a time changes a box's stack. The lock is held as long as the descriptor is open. */
int stack_lock(const struct place *p, int *ret_fd, struct pale_err *e) MUST_CHECK;

/* The open layer becomes a closed one, and another is opened on it. The folder of the new one is the caller's to make first; its id is
 * chosen by stack_new_id. *ret: the number of the closed one. */
int stack_new_id(char ret[LAYER_ID_LEN + 1], struct pale_err *e) MUST_CHECK;
int stack_close(struct stack *s, const char *next_open, uint64_t now_ms, int *ret, struct pale_err *e) MUST_CHECK;

/* Adds a closed layer as it is. Its number, or a negative code. */
int stack_add_layer(struct stack *s, const struct stack_layer *l, struct pale_err *e) MUST_CHECK;
int stack_add_join(struct stack *s, const struct stack_join *j, struct pale_err *e) MUST_CHECK;

/* Who made the layer or join with this id; "" if the list has none. */
const char *stack_maker(const struct stack *s, const char *id);

/* The number of the closed layer with this id, or STACK_NONE. */
int stack_find_layer(const struct stack *s, const char *id);

/* PALE_CORRUPT if this layer or one that it lies on is no longer to be used; box: its name, for the error. */
int stack_refuse_poison(const struct stack *s, int layer, const char *box, struct pale_err *e) MUST_CHECK;

/* A name for a layer. PALE_EXISTS if it is taken; PALE_BAD_INPUT if it is none; "" and NULL: one of our own, by prefix. */
int stack_add_snapshot(struct stack *s, const char *name, int layer, uint64_t now_ms, bool automatic, struct pale_err *e) MUST_CHECK;
const struct stack_snapshot *stack_find(const struct stack *s, const char *name);
bool stack_remove_snapshot(struct stack *s, const char *name);

/* The ids of the folders to join for what layer stands for, lowest first; runs are taken joined where they are. ret: room for the
 * stack's layer_count. Returns how many. */
size_t stack_chain(const struct stack *s, int layer, const char **ret);

/* How many of the chain's lowest do not count for the project. */
size_t stack_project_from(const struct stack *s, int layer);

/* Does the project begin again with one of this run? */
bool stack_begins_anew(const struct stack *s, int first, int last);

/* When the project began as the open layer has it, in milliseconds; 0: with the box. */
uint64_t stack_project_since(const struct stack *s, int layer);

/* Forgets layers and joins that neither a snapshot nor the open layer stands on. */
int stack_prune(struct stack *s, struct pale_err *e) MUST_CHECK;
