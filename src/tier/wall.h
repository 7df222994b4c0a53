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

/* The places of a box that are made of layers. */
enum wall_part { PART_HOME, PART_TMP, PART_PROJECT, PART_ROOT, PART_COUNT };
extern const char *const wall_part_names[PART_COUNT]; /* as folders of a layer are named */
#define WALL_WORK "work"                              /* … and the one with a folder for each, which is the kernel's */

#define WALL_LAYERS_MAX 64 /* joining keeps them far below */

typedef int wall_admission(void *arg, pid_t pid, struct pale_err *e);

struct wall_plan {
    const struct policy *policy;
    struct ids ids;
    int ids_home; /* where the box's user namespace is made, see ids_make_home; -1: here */
    const char *hostname;
    const char *machine_id; /* 32 hex digits */
    const char *image_root; /* the folder of the image; NULL: the host base */
    /* Folders of closed layers, lowest first, and of the open one, which has a folder for each part and one for each in work; NULL: all
     * the box's writes are in memory. */
    const char *const *layers;
    size_t layer_count;
    size_t project_from; /* how many of the lowest do not count for the project */
    const char *open_layer;
    int gateway_fd;         /* where the sockets of the box's way out go, see confine/detour.h; -1: it has none */
    const char *etc_dir;    /* the shared part of /etc, see tier/etc.h */
    const char *init_path;  /* pale-init */
    uint64_t scratch_bytes; /* size of a memory scratch; 0: the kernel's default */
    uint64_t weaken;        /* test builds only */
    /* Folders of the box that are covered by an empty one where they are: each project's .pale in what it is shown. */
    char *const *hidden;
    size_t hidden_count;
    /* The box's layers and its cgroup are another's still: the builder goes as far as it can without, until wall_take_layers and
     * wall_admit. */
    bool ahead;
    /* Puts the new process into the box's cgroup before it runs anything; may be NULL. */
    wall_admission *admit;
    void *admit_arg;
};

struct wall {
    pid_t pid; /* pale-init, as the host sees it */
    int pidfd;
    int wire_fd;   /* the stream to it */
    int report_fd; /* tells how the building went; -1 once that is known */
    int go_fd;     /* what the builder waits for; -1: it has all it needs */
    /* The outer user namespace and the mounts, opened while the builder waited: it is not ours to look at each time it changes its
     * ids. Whoever has no more use for them closes them. */
    int user_ns, mount_ns;
    uint32_t user_space; /* the number of user_ns */
};

/* Has a box of this policy this part, as layers? on_disk: it keeps its writes, so that its home and its /tmp are layers too. */
bool wall_has_part(const struct policy *policy, bool on_disk, enum wall_part part);

/* Begins to build the wall and to start pale-init behind it. Messages may be put on the wire at once; wall_await tells whether
 * anybody will read them. On failure nothing is left. */
int native_start(const struct wall_plan *plan, struct wall *ret, struct pale_err *e) MUST_CHECK;

/* The two steps that a plan which was ahead has left open, in this order. A builder that has ended meanwhile says why. */
int wall_take_layers(struct wall *w, struct pale_err *e) MUST_CHECK;
int wall_admit(struct wall *w, wall_admission *admission, void *arg, struct pale_err *e) MUST_CHECK;

/* Can a wall be built before its cgroup is there? version: of the host's groups. In version 1 an ordinary user may move only a process with
 * their own id, which the builder gives up. */
bool wall_admits_late(int version);

/* Waits until pale-init runs behind the finished wall, or says why not. */
int wall_await(struct wall *w, struct pale_err *e) MUST_CHECK;

/* Ends everything behind the wall and waits for it. */
void wall_destroy(struct wall *w);

#define WALL_HOME "/home/agent"
#define WALL_USER "agent"
