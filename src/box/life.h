/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a box: making it with its policy, and ending it, so that of two who try at once one succeeds and nothing is left half
 * done. Blocks. */
#pragma once

#include "box/place.h"
#include "policy/policy.h"

struct life_order {
    const char *name;
    enum place_scope scope;
    const char *tenant; /* NULL: the user's own */
    const struct policy *policy;
    bool durable; /* the box is not started at once; else its keeper sees to it that the policy is on the disk */
};

/* Makes its folders and writes the policy. On failure nothing is left. */
int life_make(const struct life_order *o, struct place *ret, struct pale_err *e) MUST_CHECK;

/* Removes what life_make made, because the box did not start. It may be up and only its word not have reached us. */
void life_take_back(const struct place *p);

/* The policy it was made with. */
int life_policy(const struct place *p, struct policy *ret, struct pale_err *e) MUST_CHECK;

/* Does its policy have a line that begins so? Cheaper than reading it all. */
int life_has_line(const struct place *p, const char *begin, bool *ret, struct pale_err *e) MUST_CHECK;

/* Stops it if it runs, and waits until its keeper is gone. With only_idle PALE_BUSY if a command runs. */
int life_stop(const struct place *p, bool only_idle, struct pale_err *e) MUST_CHECK;

/* Takes away what the dead have left: of boxes whose keeper was killed its socket, cgroup and claims; of boxes whose data folder
 * somebody has removed, while the folder around it is there, all the rest. *ret: how many of the latter. */
int life_sweep_all(unsigned *ret, struct pale_err *e) MUST_CHECK;

/* A number that a box is given when it is made and keeps: a later one of the same name and id has another. 0 if there is none. */
uint64_t life_born(const struct place *p);

/* Takes away the cgroup, the claims and the socket of a keeper that was killed. The caller has the box's lock, so that no other is just
 * starting. */
int life_clear(const struct place *p, struct pale_err *e) MUST_CHECK;

/* Takes away what a keeper that was killed has left, frozen processes among it; nothing if a keeper has the box. */
int life_sweep(const struct place *p, struct pale_err *e) MUST_CHECK;

/* Every process of the box stands still, or goes on. To freeze one that does not run is an error; a box that does not run is thawed. */
int life_freeze(const struct place *p, bool on, struct pale_err *e) MUST_CHECK;
