/* SPDX-License-Identifier: Apache-2.0 */
/* A deed that is listened to on behalf of a call: what it tells passes through as it comes, unread, and the deed waits while the client
 * does. It may be given the call's body, too, no faster than it takes that. */
#pragma once

#include "box/place.h"
#include "fleet/fleet.h"
#include "ops/call.h"
#include "ops/world.h"

#define HEARING_ABOUT_MAX 160

struct hearing;

struct hearing_use {
    const char *type; /* of what is told */
    bool goes_on;     /* it is heard to its end, client or not; else a client that leaves ends it */
    /* It is done, and this is what it told at the end; the call may be gone. May be NULL. */
    void (*done)(const struct hearing *h, const char *told);
    void (*over)(struct world *w); /* it is done, has failed, or nobody listens any more: called once. May be NULL */
    uint64_t takes;                /* at most so many bytes of the call's body; 0: it is given none */
};

struct hearing {
    struct call *call;   /* NULL: its client has left */
    struct order *order; /* NULL: it has ended */
    struct hearing_use use;
    bool begun;
    uint64_t given;
    struct world *world;
    char about[HEARING_ABOUT_MAX], caller[CALLER_MAX + 1];
};

/* about: the box or image it is about, kept for done. Answers the call, then or later. */
void hearing_follow(struct call *c, const struct msg_deed *m, const struct hearing_use *use, const char *about);

/* For fleet_deed, with a call that is held: answers it, with nothing if all went well, and lets it go. */
void hearing_done(void *arg, const struct msg_deed_done *d);
