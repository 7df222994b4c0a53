/* SPDX-License-Identifier: Apache-2.0 */
/* The way to a box that a verb names, on this host or through a daemon elsewhere: the same keeper speaks at its end.
 *
 * Here the box is found by its folder; elsewhere the daemon of --host finds it, starts it and hands over the connection. */
#pragma once

#include "box/place.h"
#include "box/reach.h"
#include "cli/cli.h"
#include "cli/remote.h"
#include "policy/policy.h"
#include "wire/message.h"

struct door {
    const struct args *args;
    bool is_far;
    char name[BOX_NAME_MAX + 1];
    struct place place;   /* if it is not */
    struct remote remote; /* if it is; its connection is kept for the next question */
};

#define own_door CLEANUP(door_close) struct door
void door_close(struct door *d);

/* Finds the box, or, far away, the daemon that knows it. Says on standard error if a project's box hides the user's. */
int door_find(struct door *d, const struct args *a, const char *name, struct pale_err *e) MUST_CHECK;

/* A connection to its keeper, which is started if there is none and start is set; else PALE_NOT_FOUND. May be called again. */
int door_reach(struct door *d, struct reach *r, bool start, struct pale_err *e) MUST_CHECK;

/* For a question that is answered at once: who does not answer from far away is not waited for without end. */
void door_hurry(const struct door *d, struct reach *r);

/* The policy it was made with. */
int door_policy(struct door *d, struct policy *ret, struct pale_err *e) MUST_CHECK;

/* Adds the variables of our environment that its policy lets pass. */
int door_pass_env(struct door *d, struct msg_exec *m, struct pale_err *e) MUST_CHECK;

/* Refuses what cannot be done through a daemon elsewhere; 0 if the verb is about this host. */
int door_only_here(const struct args *a, const char *what, const char *why, struct pale_err *e) MUST_CHECK;
