/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs: the commands of a box as init sees them, from request to last descendant. */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "init/link.h"
#include "init/runner.h"

#define JOB_NONE UINT16_MAX
#define SPARES_MAX 3 /* two while the box is busy, and a prober */
#define SPARE_NOT_DUE (-1)

/* Whether the box stands still, by signals. */
enum job_hold { HOLD_NOT, HOLD_SEEKING, HOLD_DONE };

enum job_phase { PHASE_FREE, PHASE_SPARE, PHASE_RUNNING, PHASE_LINGERING };

struct job {
    enum job_phase phase;
    uint16_t chan; /* the keeper's number for it */
    uint32_t generation;
    pid_t runner, command;
    int request_fd;             /* a spare's request pipe */
    int in_fd, out_fd, err_fd;  /* our ends; out_fd is the master of a terminal job, in_fd a copy of it */
    int16_t poll_out, poll_err; /* their places among the descriptors polled, -1: not there */
    bool terminal;
    bool discard;              /* nobody reads any more */
    uint64_t credit;           /* output bytes the keeper is ready for */
    uint32_t in_len, in_start; /* input not yet taken by the command */
    bool in_end;
    bool exited, exit_sent;
    uint32_t drain[2]; /* bytes that stood in the pipes when the command ended */
    unsigned misses;   /* errors of its pipes, in a row */
    struct msg_exit exit;
    bool killing;
    int kill_rounds, quiet_rounds;
    int64_t next_round_ms;
    int pending_signal;  /* came before the command was born; 0: none */
    bool signalled;      /* it was sent one, and may have died of it before its program began */
    int64_t tell_pid_us; /* when the keeper is told the pid; most commands have ended by then */
    uint64_t cpu_ms;
    int64_t cpu_check_ms;
    int cpu_misses; /* readings of the process tree that failed, in a row */
};

struct jobs {
    struct link *link;
    struct runner_setup setup;
    int report_read_fd, proc_fd;
    int probe_read_fd; /* where the prober will report; -1: none is under way */
    int probe_slot;
    uint32_t probe_generation;
    uint16_t slot_of[JOBS_MAX]; /* by channel */
    uint16_t spare[SPARES_MAX]; /* slots of the spares, the oldest first */
    int spares;
    bool keep_spare, sweeping;
    bool served; /* there has been a request */
    /* Requests that spares were given and may not have begun, by the slots that have them. */
    struct {
        int slot; /* -1: none */
        uint32_t generation, len;
        uint8_t bytes[RUNNER_SPARE_MAX];
    } given[SPARES_MAX];
    int sweep_rounds;
    enum job_hold hold;
    int hold_quiet, hold_rounds; /* readings in a row that found nobody running, somebody running */
    uint64_t hold_number;
    int running; /* commands not yet ended */
    int highest; /* slots in use lie below */
    int64_t spare_due_us;
    int64_t last_end_us, busy_until_us; /* a box is busy while one command follows another */
    struct job job[JOBS_MAX];
    uint8_t input[JOBS_MAX][STDIN_WINDOW];
};

/* Takes a record of a runner's, or one that init makes for a command without one. */
void job_report(struct jobs *js, const struct report *r);

/* A free slot, reset, or -1. Pipes for its three streams; ours do not block, the command's do, as programs expect. */
int job_take_slot(struct jobs *js);
bool job_make_pipes(struct job *j, struct runner_stdio *ret);
void job_close(struct job *j);

/* Starts a process for a request that is at hand; one that cannot be started is answered at once. */
void job_start(struct jobs *js, uint16_t chan, const struct msg_exec *m);

/* Is its program about to run, or has it? */
bool job_has_begun(const struct jobs *js, const struct job *j);

/* The slot's process has its request: from here on it is the job of this channel. */
void job_adopt(struct jobs *js, int slot, uint16_t chan, const struct msg_exec *m);

/* Frees a slot whose runner has ended. */
void job_free(struct jobs *js, struct job *j);

/* begun: JOBS_MAX numbers that children share with init. */
void jobs_init(struct jobs *js, struct link *link, int userns_fd, int proc_fd, const int report_pipe[2], uint32_t *begun);

/* A message from the keeper; false if it makes no sense, which ends the box. */
bool jobs_message(struct jobs *js, const struct frame *f);

/* Descriptors to poll. jobs_polled takes them back after poll. */
#define JOBS_POLL_MAX (JOBS_MAX * 3)
int jobs_poll(struct jobs *js, struct pollfd *fds);
void jobs_polled(struct jobs *js, const struct pollfd *fds);

/* Records on the report pipe, and children that ended. */
void jobs_reports(struct jobs *js);
void jobs_children(struct jobs *js);

/* Work that is due by time: kills under way, CPU limits, the spare. Returns how long to wait at most in us, -1 for ever. */
int64_t jobs_tick(struct jobs *js);
