/* SPDX-License-Identifier: Apache-2.0 */
/* Changing what holds for a box, whether it runs or not: its policy, or that it is cut off.
 *
 * How it works: who changes something holds the state folder, so that there is one at a time. Of a box that is stopped he holds the lock
 * too, writes the record and then the file. Of one that runs the log is its keeper's: the file is put into the state folder and the keeper
 * told to look (ASK_RELOAD). It writes the record, and then it lets the change hold. The keeper takes no policy and no order from the
 * connection: others than the operator may speak to it through the daemon, and nobody but the user writes in the state folder. Blocks. */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/json.h"
#include "box/place.h"
#include "policy/policy.h"

/* In the state folder: a policy that the keeper is to take up. */
#define AMEND_NEXT "policy.next"

struct amend {
    const struct place *place;
    const char *caller;
    int dir_fd, lock_fd; /* lock_fd: the box is stopped, and nobody starts it meanwhile; -1: it runs */
};
#define own_amend CLEANUP(amend_done) struct amend
void amend_done(struct amend *a);
int amend_begin(struct amend *a, const struct place *p, const char *caller, struct pale_err *e) MUST_CHECK;

/* A record in the log of a box that is stopped; fill adds to it. */
int amend_record(const struct amend *a, const char *event, void (*fill)(const void *arg, struct json *j), const void *arg,
                 struct pale_err *e) MUST_CHECK;

/* Has the keeper look at the state folder. PALE_NOT_FOUND or PALE_GONE if it has ended since. */
int amend_tell(const struct amend *a, struct pale_err *e) MUST_CHECK;

/* May it be that the box has stopped since it was found to run, or the reverse? Then all is to be done again, for some seconds. */
bool amend_is_passing(int r, int64_t until_ms);
#define AMEND_WAIT_MS 10000

/* A policy in place of the one there is. next makes it of the old one, and checks it. PALE_BUSY if the box runs and something of the change
 * needs another start. */
struct amend_policy {
    int (*next)(void *arg, const struct policy *old, struct policy *ret, struct pale_err *e);
    void *arg;
    const char *caller;
    struct policy old, new; /* what was, and what is now: the caller's to free, whatever comes of it */
};
int amend_policy(const struct place *p, struct amend_policy *x, struct pale_err *e) MUST_CHECK;

/* The record of a change of policy: its event, and what is in it. */
const char *amend_event(const struct policy *old, const struct policy *new);
void amend_describe(struct json *j, const struct policy *old, const struct policy *new);
