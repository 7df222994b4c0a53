/* SPDX-License-Identifier: Apache-2.0 */
/* Control groups: the limits of a whole box on memory, processes and CPU share, in version 2 or 1, where we may write one.
 *
 * How it works: where systemd hands out version 2, the keeper asks it for a scope of its own (confine/scope.h), moves into the leaf
 * `keeper` of it, and the box goes beside that. Else boxes live at <mount>/pale/<uid>/<id>: root makes that; in version 1 `pale
 * doctor --fix` gives an ordinary user their folder. What cannot be written is not there: cgroup_find says which controllers are,
 * and why not. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/limits.h"
#include "confine/scope.h"

enum cgroup_controller { CGROUP_MEMORY, CGROUP_PIDS, CGROUP_CPU, CGROUP_CPUACCT, CGROUP_FREEZER, CGROUP_CONTROLLERS };

/* What this process could use. */
struct cgroup_host {
    int version; /* 2, 1, or 0: none */
    bool has[CGROUP_CONTROLLERS];
    char base[CGROUP_CONTROLLERS][PATH_BYTES_MAX / 4]; /* the folder boxes go into; in version 2 all the same */
    char reason[256];                                  /* why a controller is missing */
    int trouble;                                       /* an errno: whether one is there could not be found out */
};

/* scope: the one that was asked for, which is waited for here; NULL for who only looks. */
void cgroup_find(struct scope *scope, struct cgroup_host *ret);

struct cgroup {
    int version; /* 0: this box has none */
    bool used[CGROUP_CONTROLLERS];
    int dir_fd[CGROUP_CONTROLLERS]; /* -1 where not used */
    int oom_fd;                     /* where the kernel counts what it ended; read for every command */
    int cpu_fd;                     /* where it counts CPU time; -1: not asked for */
    char path[CGROUP_CONTROLLERS][PATH_BYTES_MAX / 4];
};

struct cgroup_limits {
    uint64_t memory_bytes, processes, cpu_milli; /* 0: none */
    bool count_cpu;                              /* no limit of the group's, but its count is wanted */
    bool freezer;                                /* the group must be one that can be frozen */
};

/* Makes the box's group with these limits. A limit whose controller is missing is an error: the caller asks only for what
 * cgroup_find has. Of a group of that id that is there already, frozen when its keeper was killed, the processes are ended first:
 * whoever came into it would stand still too. */
int cgroup_create(const struct cgroup_host *host, const char *id, const struct cgroup_limits *lim, struct cgroup *ret,
                  struct pale_err *e) MUST_CHECK;

/* Puts a process in. */
int cgroup_admit(const struct cgroup *cg, pid_t pid, struct pale_err *e) MUST_CHECK;

/* What a share of the CPU becomes: the kernel takes no less than a hundredth of one. */
uint64_t cgroup_cpu_milli(uint64_t milli);

/* Reads back what the kernel holds: the limits of the group with this id, as far as they are set. False if the process is not in it. */
bool cgroup_look(const struct cgroup *cg, const char *id, pid_t pid, struct cgroup_limits *ret);

/* Processes the kernel has ended in it for want of memory; the most memory it ever held (0: not known). */
uint64_t cgroup_oom_kills(const struct cgroup *cg);
uint64_t cgroup_peak_bytes(const struct cgroup *cg);

/* CPU time of everything that was ever in it; 0 if that is not counted. */
uint64_t cgroup_cpu_us(const struct cgroup *cg);

/* Can it be frozen at all? */
bool cgroup_can_freeze(const struct cgroup *cg);

/* Stops every process in it, or lets them go on; they see nothing of it. Freezing takes a moment: cgroup_is_frozen tells when the last
 * of them stands still; until then it is asked for again. In version 1 a frozen process does not even die: whoever kills one must thaw it
 * afterwards. */
int cgroup_freeze(const struct cgroup *cg, bool on, struct pale_err *e) MUST_CHECK;
bool cgroup_is_frozen(const struct cgroup *cg);

/* Removes the group; its processes must have ended. */
void cgroup_destroy(struct cgroup *cg);

/* Removes the groups of a box whose keeper was killed and could not do it, and ends what stands frozen in them. What systemd has made
 * it removes itself. */
void cgroup_sweep(const char *id);

void cgroup_init(struct cgroup *cg);
