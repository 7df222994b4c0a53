/* SPDX-License-Identifier: Apache-2.0 */
/* A runner: the process between init and one command.
 *
 * How it works: init forks a runner; the runner forks the command, outlives it, and is the subreaper of everything the command
 * leaves behind, so that "all descendants of this command" is a fact of the process tree and not a guess. The command's
 * process enters the inner user namespace, gives up everything, and only then runs the program. Runners report to init over one
 * pipe with fixed records. A spare runner is made ahead of time: its command is confined already and waits for a request. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "init/probe.h"
#include "wire/message.h"

/* What init knows at start and every runner inherits. */
struct runner_setup {
    struct msg_config config;
    int userns_fd;
    int report_fd;   /* write end */
    uint32_t *begun; /* by slot, shared with init: the generation whose command is about to run */
};

enum report_kind { REPORT_PID = 1, REPORT_FAILED, REPORT_EXIT };

/* One record on the report pipe; smaller than PIPE_BUF, so it is never cut. */
struct report {
    uint32_t slot, generation;
    uint32_t kind;
    int32_t value; /* pid, errno or wait status */
    uint32_t stage;
    uint32_t last; /* with REPORT_EXIT: no descendant is left, the runner ends too */
    uint64_t cpu_us, peak_kib;
};

/* The descriptors of a command as its process sees them; -1 where there is none. */
struct runner_stdio {
    int in, out, err; /* pipe ends; in < 0: /dev/null */
    int terminal;     /* the slave of a pty, in place of the three */
};

/* Forks a runner for a request that is at hand. Returns its pid or -1. */
pid_t runner_start(const struct runner_setup *s, uint32_t slot, uint32_t generation, const struct msg_exec *m,
                   const struct runner_stdio *io);

/* Forks the command alone, without a runner, for a box that runs no other: its descendants are then all that is in the box.
 * Returns the command's pid or -1. */
pid_t runner_start_bare(const struct runner_setup *s, uint32_t slot, uint32_t generation, const struct msg_exec *m,
                        const struct runner_stdio *io);

void runner_close_stdio(struct runner_stdio *io);

/* What a spare tries before it waits, and where it writes its struct probe_report. */
struct runner_probe {
    const struct msg_probe *ask;
    int report_fd;
};

/* Forks a spare: with a runner, or alone for a box that runs no other. The request comes later, as bytes on request_fd, with the
 * flags of its frame. probe may be NULL. */
pid_t runner_start_spare(const struct runner_setup *s, uint32_t slot, uint32_t generation, int request_fd, const struct runner_probe *probe,
                         const struct runner_stdio *io);

/* May a spare (default user, no terminal) take this request of n bytes? */
bool runner_spare_fits(const struct msg_exec *m, size_t n);

/* A pipe takes this much without a reader. */
#define RUNNER_SPARE_MAX 61440u

/* In a request: the box's own user. */
#define RUNNER_DEFAULT_ID UINT32_MAX
