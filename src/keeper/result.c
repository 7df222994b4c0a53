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
    }
}

void result_audit(struct kjob *j)
{
    const struct msg_result *r = &j->result;
    struct json *w = audit_begin(&j->k->audit, "exec.end");
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
    json_u64(w, "time_us", r->time_us);
    json_u64(w, "cpu_us", r->cpu_us);
    json_u64(w, "out_bytes", r->out_bytes);
    if (r->dropped_bytes)
        json_u64(w, "dropped_bytes", r->dropped_bytes);
    (void)!audit_commit(&j->k->audit, NULL);
}
