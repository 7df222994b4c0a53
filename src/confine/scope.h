/* SPDX-License-Identifier: Apache-2.0 */
/* A systemd scope: a control group of the calling process's own, asked for from the service manager over D-Bus.
 *
 * How it works: where systemd runs and cgroup v2 is the only one, groups are handed out by it alone: the user's own manager to an
 * ordinary user, the system's to root. scope_ask sends the whole conversation in one piece and does not wait; scope_await waits
 * for its end. The other side is trusted no more than any peer: its bytes go through one bounded parser, nothing waits longer
 * than SCOPE_WAIT_MS, and whether we have been moved is then seen in /proc/self/cgroup, not believed. The scope goes away by
 * itself, with all groups in it, when the last process in it has ended. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"
#include "base/own.h"

/* A manager that is reloading its units takes a second or two; one that takes longer is no use. */
#define SCOPE_WAIT_MS 4000

#define SCOPE_UNIT_MAX 64

/* --- the conversation, without any I/O --- */

struct scope_talk {
    char unit[SCOPE_UNIT_MAX];
    bool greeted;     /* the other side has let us in; messages follow */
    char manager[64]; /* who answered the request, by a name that the bus gives; "" where there is no bus */
    char reason[160]; /* why we were refused */
};

/* The whole of what we say: who we are, and the request to put the sender of it into a new scope. bus: there is a bus between
 * us and the manager. Returns its length, 0 if it does not fit. */
size_t scope_write(const struct scope_talk *t, const char *description, unsigned uid, bool bus, void *mem, size_t cap);

enum scope_news { SCOPE_NEED_MORE, SCOPE_READY, SCOPE_REFUSED };

/* Takes what is whole of the answer; *ret_used bytes of it are done with. */
enum scope_news scope_hear(struct scope_talk *t, const uint8_t *p, size_t n, size_t *ret_used);

/* --- the real thing --- */

struct scope {
    int fd; /* -1: none was asked for, or it is over */
    int64_t until_ms;
    struct scope_talk talk;
    char via[128];   /* the socket that took our request */
    char group[512]; /* once we are in: where it is below the mount of cgroups */
};

void scope_init(struct scope *s);
void scope_done(struct scope *s);
#define own_scope CLEANUP(scope_done) struct scope

/* Are groups here handed out by systemd? */
bool scope_is_needed(void);

/* Asks for a scope with a name that has id in it. It does not wait and does not fail: scope_await tells. */
void scope_ask(struct scope *s, const char *id, const char *description);

/* True: this process is in the scope, at group. False: talk.reason says why not, and what to do. */
bool scope_await(struct scope *s);
