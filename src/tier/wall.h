/* SPDX-License-Identifier: Apache-2.0 */
/* What every tier offers: start pale-init behind a wall made from a policy and give one byte stream to it. Everything above
 * (commands, terminals, files, audit) is written once, against this. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "confine/ids.h"
#include "policy/policy.h"

struct wall_plan {
    const struct policy *policy;
    struct ids ids;
    int ids_home; /* where the box's user namespace is made, see ids_make_home; -1: here */
    const char *hostname;
    const char *machine_id; /* 32 hex digits */
    const char *data_dir;   /* the box's own folder on disk; NULL: all its writes are in memory */
    const char *etc_dir;    /* the shared part of /etc, see tier/etc.h */
    const char *init_path;  /* pale-init */
    uint64_t scratch_bytes; /* size of a memory scratch; 0: the kernel's default */
    uint64_t weaken;        /* test builds only */
    /* Puts the new process into the box's cgroup before it runs anything; may be NULL. */
    int (*admit)(void *arg, pid_t pid, struct pale_err *e);
    void *admit_arg;
};

struct wall {
    pid_t pid; /* pale-init, as the host sees it */
    int pidfd;
    int wire_fd;         /* the stream to it */
    int report_fd;       /* tells how the building went; -1 once that is known */
    uint32_t user_space; /* the number of the outer user namespace */
};

/* Begins to build the wall and to start pale-init behind it. Messages may be put on the wire at once; wall_await tells whether
 * anybody will read them. On failure nothing is left. */
int native_start(const struct wall_plan *plan, struct wall *ret, struct pale_err *e) MUST_CHECK;

/* Waits until pale-init runs behind the finished wall, or says why not. */
int wall_await(struct wall *w, struct pale_err *e) MUST_CHECK;

/* Ends everything behind the wall and waits for it. */
void wall_destroy(struct wall *w);

#define WALL_HOME "/home/agent"
#define WALL_USER "agent"
