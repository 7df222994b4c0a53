/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what a job's end means: the status a shell would show, our own codes for limits, the words for people, the audit's. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/number.h"
#include "keeper/keeper.h"

static const char *stage_text(uint64_t stage)
{
    static const char *const texts[STAGE_COUNT] = {
        [STAGE_FORK] = "no process could be started for it",  [STAGE_CONFINE] = "the box's confinement could not be entered",
        [STAGE_TERMINAL] = "it could not get a terminal",     [STAGE_USER] = "it could not become that user",
        [STAGE_CWD] = "the working folder cannot be entered", [STAGE_EXEC] = "it cannot be run"};
    return stage < STAGE_COUNT ? texts[stage] : "it could not start";
}

static void not_started(struct kjob *j, const struct msg_exit *x)
{
    int os = x->value < 4096 ? (int)x->value : EPROTO;
    j->result.flags |= RESULT_NOT_STARTED;
    if (x->stage == STAGE_EXEC)
        j->result.status = os == ENOENT || os == ENOTDIR ? 127 : 126;
    else
        j->result.status = x->stage == STAGE_CWD ? 126 : 125;
    if (x->stage == STAGE_EXEC && os == ENOENT)
        snprintf(j->message, sizeof(j->message), "%.120s: not found in the box", j->command);
    else
        snprintf(j->message, sizeof(j->message), "%.100s: %s: %s", j->command, stage_text(x->stage), strerror(os));
}

/* Which limit ran out, and what is to be done: a scratch in memory is as large as limits.disk or, without it, limits.memory. */
static void no_room(struct kjob *j, uint64_t flags)
{
    const struct keeper *k = j->k;
    const struct policy_limit *lim = k->policy.limits;
    bool in_layers = k->data_dir && k->policy.scratch == SCRATCH_DISK && !(flags & EXIT_IN_MEMORY);
    const char *where = !(flags & EXIT_IN_MEMORY)                          ? "the box's home"
                        : k->data_dir && k->policy.scratch == SCRATCH_DISK ? "the box's /run, /dev/shm or /var/tmp"
                                                                           : "the box's scratch";
    const char *what = flags & EXIT_NO_ROOM ? "is full" : "has no room for more files";
    char text[32];
    j->result.flags |= RESULT_DISK_FULL;
    if (in_layers && k->disk_fd < 0)
        snprintf(j->message, sizeof(j->message), "disk full: %s %s, because the host's disk is; make room on it", where, what);
    else
        snprintf(j->message, sizeof(j->message), "disk limit: %s %s (%s); remove files, or raise %s", where, what,
                 number_show_bytes(in_layers ? lim[LIMIT_DISK].value : k->scratch_bytes, text, sizeof(text)),
                 lim[LIMIT_DISK].value ? "limits.disk" : "limits.memory");
}

void result_set(struct kjob *j, const struct msg_exit *x)
{
    struct keeper *k = j->k;
    struct msg_result *r = &j->result;
    int status = (int)(x->value & 0xffff);
    char text[32];
    if (x->flags & EXIT_NOT_STARTED) {
        not_started(j, x);
        return;
    }
    if (WIFSIGNALED(status)) {
        r->signal = (uint64_t)WTERMSIG(status);
        r->status = 128 + r->signal;
    } else {
        r->status = (uint64_t)WEXITSTATUS(status);
    }
    if (j->timed_out) {
        r->flags |= RESULT_TIMEOUT;
        r->status = 124;
        snprintf(j->message, sizeof(j->message), "killed: it took longer than %s", number_show_ms(j->timeout_ms, text, sizeof(text)));
    } else if ((x->flags & EXIT_CPU_LIMIT) || j->out_of_cpu) {
        r->flags |= RESULT_CPU_LIMIT;
        snprintf(j->message, sizeof(j->message), "killed: it used its %s of CPU time",
                 number_show_ms(k->policy.limits[LIMIT_CPU_TIME].value, text, sizeof(text)));
    } else if (j->out_of_memory || cgroup_oom_kills(&k->cgroup) > j->oom_before) {
        r->flags |= RESULT_OOM;
        snprintf(j->message, sizeof(j->message), "out of memory: the box's limit is %s",
                 number_show_bytes(k->policy.limits[LIMIT_MEMORY].value, text, sizeof(text)));
    } else if (x->flags & EXIT_KILLED) {
        r->flags |= RESULT_KILLED;
        if (!j->killed)
            snprintf(j->message, sizeof(j->message), "killed: what watches over it in the box has ended");
    } else if (x->flags & (EXIT_NO_ROOM | EXIT_NO_FILES)) {
        no_room(j, x->flags);
    }
}

void result_audit(struct kjob *j)
{
    const struct msg_result *r = &j->result;
    struct audit *a = &j->k->audit;
    const char *was = a->caller;
    if (!was && j->ender[0] && (r->signal || r->flags & RESULT_KILLED))
        a->caller = j->ender;
    struct json *w = audit_begin(a, "exec.end");
    a->caller = was;
    json_u64(w, "job", j->id);
    json_u64(w, "status", r->status);
    if (r->signal)
        json_u64(w, "signal", r->signal);
    if (r->flags & RESULT_TIMEOUT)
        json_bool(w, "timeout", true);
    if (r->flags & RESULT_OOM)
        json_bool(w, "oom", true);
    if (r->flags & RESULT_CPU_LIMIT)
        json_bool(w, "cpu_limit", true);
    if (r->flags & RESULT_DISK_FULL)
        json_bool(w, "disk_full", true);
    json_u64(w, "time_us", r->time_us);
    json_u64(w, "cpu_us", r->cpu_us);
    json_u64(w, "out_bytes", r->out_bytes);
    if (r->dropped_bytes)
        json_u64(w, "dropped_bytes", r->dropped_bytes);
    (void)!audit_commit(&j->k->audit, NULL);
}
