/* SPDX-License-Identifier: Apache-2.0 */
/* A change of a box's stack, step by step: begun (locked and read), the box stopped where it must be, told to its audit log, done by
 * stack_save, and the box let go on. Whoever leaves it half way leaves the box as it was.
 *
 * Who knows before the box is stopped how its stack will look (change_plan) has the next wall built while this one is taken down. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/own.h"
#include "box/layerdir.h"
#include "box/life.h"
#include "box/place.h"
#include "box/reach.h"
#include "box/stack.h"
#include "policy/policy.h"

struct change {
    const struct place *place;
    const char *caller;
    struct policy policy;
    struct stack stack;
    int stack_lock;
    struct life_halted halted; /* lock_fd -1: it was not stopped */
    int64_t stopped_us;
    struct reach next;                /* the keeper that lets the box go on */
    char next_open[LAYER_ID_LEN + 1]; /* the layer that is to be opened, made already unless it is only planned; or "" */
    char closing[LAYER_ID_LEN + 1];   /* the one that is to be closed by the plan; or "" */
    bool planned;                     /* the stack is as it is to be, … */
    bool next_made;                   /* … and the layer is there */
    bool saved;
    int told_fd;             /* the audit log, where we wrote it and it is to be synced before the effect; else -1 */
    int kept[LAYERDIR_KEPT]; /* the same of the layer that is closed */
    int state_fd;            /* what is to be synced before anybody hears that it is done; else -1 */
};
#define own_change CLEANUP(change_done) struct change
void change_done(struct change *c);

/* Locks the stack and reads it and the policy. PALE_UNSUPPORTED if the box keeps nothing on the disk. */
int change_begin(struct change *c, const struct place *p, const char *caller, struct pale_err *e) MUST_CHECK;

/* Before the box is stopped: its stack becomes what change_save will write. The open layer is closed unless nothing is in it; *ret: the
 * layer that will stand for the box as it is. What else the caller changes in the stack comes before halt too. */
int change_plan(struct change *c, int *ret, struct pale_err *e) MUST_CHECK;
/* … was in vain: the stack is read again. */
int change_unplan(struct change *c, struct pale_err *e) MUST_CHECK;
/* The box is stopped: does the plan still fit? Not if the open layer was empty and somebody has written since. */
int change_fits(const struct change *c, bool *ret, struct pale_err *e) MUST_CHECK;

/* Stops the box if it runs; nobody can start it before the change is done with. */
int change_halt(struct change *c, enum life_stop_when when, struct pale_err *e) MUST_CHECK;

/* Before the effect: who does what, in the box's audit log. Written by us where the box is stopped, and then on the disk before
 * change_save takes effect; else by its keeper, whose log it is. */
int change_tell(struct change *c, const char *event, const char *what, struct pale_err *e) MUST_CHECK;

/* Is the box as the layer below its open one? Not if nothing is written but its project begins anew. */
int change_is_empty(const struct change *c, bool *ret, struct pale_err *e) MUST_CHECK;

/* Closes the open layer unless nothing is in it. *ret: the layer that now stands for the box as it is. Needs: halt. */
int change_close_open(struct change *c, int *ret, bool *ret_changed, struct pale_err *e) MUST_CHECK;
/* The same for who had a plan: what is left to do of it. The next wall is completed from here on. */
int change_carry_out(struct change *c, struct pale_err *e) MUST_CHECK;

/* The same for a box that works, which is not stopped: its open layer is copied while it goes on, and what it changed meanwhile once more
 * while it stands still, which is for as short a time as can be: *ret_pause_us. The copy is a closed layer beside the open one. */
int change_copy_open(struct change *c, int *ret, uint64_t *ret_pause_us, struct pale_err *e) MUST_CHECK;

/* The effect: the list of layers is replaced. It outlasts a power cut from change_resume on; with change_keep at once. */
int change_save(struct change *c, struct pale_err *e) MUST_CHECK;
/* What was told and what was done are on the disk when this returns. */
int change_keep(struct change *c, struct pale_err *e) MUST_CHECK;

/* Begins to let the box go on, for who has something to do meanwhile. change_resume must follow. */
void change_restart(struct change *c);

/* The layer that stands for a snapshot, or, with NULL, for the box as it is now, which is closed or copied for it. */
int change_find_point(struct change *c, const char *at, int *ret, struct pale_err *e) MUST_CHECK;

/* Lets the box go on if it was stopped for this, whatever has come of it so far; *ret_pause_us: for how long it could not work. Returns
 * so_far if that is a failure, with its error untouched; else whether the box goes on. */
int change_resume(struct change *c, int so_far, uint64_t *ret_pause_us, struct pale_err *e) MUST_CHECK;
