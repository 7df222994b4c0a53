/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a box: making it with its policy, and ending it, so that of two who try at once one succeeds and nothing is left half
 * done. Blocks. */
#pragma once

#include "box/place.h"
#include "box/reach.h"
#include "box/stack.h"
#include "policy/policy.h"

/* In the state folder: what a keeper leaves to the next one of a box that is only stopped for a change. */
#define LIFE_HANDOVER "handover"

/* How the folder of a box is called before it is one, with its id. Whoever is killed then leaves it to `pale gc`. */
#define LIFE_UNBORN ".new-"

struct life_order {
    const char *name;
    enum place_scope scope;
    const char *tenant;         /* NULL: the user's own */
    const struct place *beside; /* another box in whose folder it goes, whatever scope and tenant say; NULL: none */
    const struct policy *policy;
    const struct stack *stack; /* what it stands on; NULL, or without an open layer: nothing */
    /* What must be in its folders before it is a box, or NULL. p->data is the folder as it is called until then. */
    int (*begin)(const void *arg, const struct place *p, struct pale_err *e);
    const void *arg;
    bool durable; /* the box is not started at once; else its keeper sees to it that the policy is on the disk */
};

/* Makes its folders under names that nobody looks for, and lets it become a box by one rename. On failure nothing of that is left, and
 * nothing else was touched. */
int life_make(const struct life_order *o, struct place *ret, struct pale_err *e) MUST_CHECK;

/* That the box is there is on the disk when this returns, as it is for one that was started. */
int life_keep(const struct place *p, struct pale_err *e) MUST_CHECK;

/* Removes what life_make made, because the box did not start. It may be up and only its word not have reached us. */
void life_take_back(const struct place *p);

/* The policy it was made with. */
int life_policy(const struct place *p, struct policy *ret, struct pale_err *e) MUST_CHECK;

/* Does its policy have a line that begins so? Cheaper than reading it all. */
int life_has_line(const struct place *p, const char *begin, bool *ret, struct pale_err *e) MUST_CHECK;

/* Whatever runs; only if no command does; only if nothing runs that a command has left behind either. */
enum life_stop_when { STOP_ANY, STOP_IDLE, STOP_EMPTY };

/* Stops it if it runs, and waits until its keeper is gone. PALE_BUSY if it may not be stopped now. caller: for whom, at most
 * CALLER_MAX bytes; "local" for the user himself. */
int life_stop(const struct place *p, enum life_stop_when when, const char *caller, struct pale_err *e) MUST_CHECK;

/* The same, and nobody starts it before the descriptor is closed. ran: there was something to stop. */
struct life_halted {
    int lock_fd;
    int home_fd; /* of its ids, for the keeper that comes after it (box/reach.h); -1: none */
    bool ran;
    /* Set by the caller, or NULL: what there is to do while a box that ran dies. */
    void (*meanwhile)(void *arg, int home_fd);
    void *arg;
};
void life_halted_done(struct life_halted *h);
int life_halt(const struct place *p, enum life_stop_when when, const char *caller, struct life_halted *ret, struct pale_err *e) MUST_CHECK;

/* Takes away what the dead have left: of boxes whose keeper was killed its socket, cgroup and claims; and boxes that were half made or
 * half removed. *ret: how many of the latter. With only_counts nothing is taken away. A box whose folder is gone stays, until it is
 * adopted or forgotten. */
int life_sweep_all(bool only_counts, unsigned *ret, struct pale_err *e) MUST_CHECK;

/* The id as a number, for places that have room for no more. Never 0. */
uint64_t life_born(const struct place *p);

/* Takes away the cgroup, the claims and the socket of a keeper that was killed. The caller has the box's lock, so that no other is just
 * starting. */
int life_clear(const struct place *p, struct pale_err *e) MUST_CHECK;

/* Takes away what a keeper that was killed has left, frozen processes among it; nothing if a keeper has the box. */
int life_sweep(const struct place *p, struct pale_err *e) MUST_CHECK;

/* Every process of the box stands still, or goes on. To freeze one that does not run is an error; a box that does not run is thawed. */
int life_freeze(const struct place *p, bool on, struct pale_err *e) MUST_CHECK;

/* Freezes it for as long as the connection lasts, so that it goes on whatever becomes of us. life_go_on: now. */
int life_pause(const struct place *p, struct reach *ret, struct pale_err *e) MUST_CHECK;
int life_go_on(const struct place *p, struct reach *r, struct pale_err *e) MUST_CHECK;

/* Tells a keeper for whom the next request is. Who says nothing is local, and so understood by keepers of older builds. */
int life_send_caller(struct reach *r, const char *caller, struct pale_err *e) MUST_CHECK;
