/* SPDX-License-Identifier: Apache-2.0 */
/* Owns jobs: a command from request to result, whoever asked and whoever listens.
 *
 * How it works: a request is checked against the policy, written to the audit log, given a channel (or queued until one is
 * free) and sent to init. Output goes to the client or to the job's log; what passes the limit is counted and dropped. Credit is
 * paid back to init as the client takes the bytes. A job ends when init says so, when its time is up, or when its client leaves. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/number.h"
#include "base/own.h"
#include "base/quote.h"
#include "confine/weaken.h"
#include "init/runner.h"
#include "keeper/keeper.h"
#include "wire/frame.h"

extern char **environ;

/* A year; more is for ever, and must not overflow a clock. */
#define TIMEOUT_MAX_MS (366ull * 24 * 3600 * 1000)

/* Bytes of a command line in an audit record: every one may take six when written as JSON. */
#define AUDIT_ARGV_MAX (AUDIT_RECORD_MAX / 8)

static uint64_t unix_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

struct kjob *work_find(struct keeper *k, uint64_t id)
{
    for (struct kjob *j = k->jobs; j; j = j->next)
        if (j->id == id)
            return j;
    return NULL;
}

static void job_free(struct kjob *j)
{
    struct keeper *k = j->k;
    struct kjob *before = NULL;
    for (struct kjob **at = &k->jobs; *at; before = *at, at = &(*at)->next)
        if (*at == j) {
            *at = j->next;
            if (k->last_job == j)
                k->last_job = before;
            break;
        }
    k->job_count--;
    loop_disarm(&k->loop, &j->timer);
    loop_disarm(&k->loop, &j->kill_timer);
    own_close(&j->log_fd);
    buf_done(&j->request);
    free(j);
}

/* Detached jobs are remembered for wait and logs, the oldest forgotten first; others end with their client. */
static void forget_old(struct keeper *k)
{
    size_t ended = 0;
    for (struct kjob *j = k->jobs; j; j = j->next)
        ended += j->state == JOB_ENDED && j->chan == JOBS_MAX;
    for (struct kjob *j = k->jobs, *next; j; j = next) {
        next = j->next;
        if (j->state != JOB_ENDED || j->chan != JOBS_MAX || j->client)
            continue;
        bool waited = false;
        for (struct client *c = k->clients; c; c = c->next)
            waited = waited || c->waiting == j;
        if (!waited && (!j->detached || ended > JOBS_REMEMBERED)) {
            job_free(j);
            ended--;
        }
    }
}

/* Who the command runs as: "" or the box's user, "root", or a number that exists in the box. */
static int parse_user(const struct keeper *k, const char *user, uint32_t *ret_uid, uint32_t *ret_gid, struct pale_err *e)
{
    uint64_t uid = 0, gid = 0;
    char text[32];
    if (user[0] == 0 || strcmp(user, WALL_USER) == 0) {
        *ret_uid = *ret_gid = RUNNER_DEFAULT_ID;
        return 0;
    }
    snprintf(text, sizeof(text), "%s", strcmp(user, "root") == 0 ? "0" : user);
    char *colon = strchr(text, ':');
    if (colon)
        *colon++ = 0;
    bool good =
        strlen(user) < sizeof(text) && number_u64(text, 65534, &uid) && (colon ? number_u64(colon, 65534, &gid) : (gid = uid, true));
    if (!good)
        return err_set(e, PALE_BAD_INPUT, "user must be " WALL_USER ", root, UID or UID:GID");
    if (k->ids.kind == IDS_ONE && (uid != k->ids.uid || gid != k->ids.gid))
        return err_set(e, PALE_UNSUPPORTED,
                       "this box has one user, " WALL_USER
                       " (%u): other ids need a range in /etc/subuid; `pale doctor` says how to get one",
                       k->ids.uid);
    *ret_uid = (uint32_t)uid;
    *ret_gid = (uint32_t)gid;
    return 0;
}

static bool env_has(const struct msg_exec *m, size_t count, const char *item)
{
    size_t n = strcspn(item, "=") + 1;
    for (size_t i = 0; i < count; i++)
        if (strncmp(m->env[i], item, n) == 0)
            return true;
    return false;
}

static void env_add(struct msg_exec *m, const char *item)
{
    if (m->envc < EXEC_STRINGS_MAX && !env_has(m, m->envc, item))
        m->env[m->envc++] = item;
}

/* The request's own variables (those the policy lets pass from the host among them) win over the policy's, those over the base. */
static void complete_env(const struct keeper *k, struct msg_exec *m)
{
    static const char *const base[] = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                                       "HOME=" WALL_HOME,
                                       "USER=" WALL_USER,
                                       "LOGNAME=" WALL_USER,
                                       "SHELL=/bin/bash",
                                       "LANG=C.UTF-8",
                                       "PALE_BOX=1"};
    for (size_t i = 0; i < k->policy.env_set.count; i++)
        env_add(m, k->policy.env_set.item[i]);
    if (is_weak(k->weaken, WEAKEN_ENV))
        for (char **at = environ; *at; at++)
            env_add(m, *at);
    for (size_t i = 0; i < sizeof(base) / sizeof(base[0]); i++)
        env_add(m, base[i]);
    m->env[m->envc] = NULL;
}

static void show_command(struct kjob *j, const struct msg_exec *m)
{
    own_buf b = {0};
    buf_init(&b, 4096);
    if (m->label[0]) {
        quote_text(&b, m->label, strlen(m->label), 400);
    } else {
        for (size_t i = 0; i < m->argc && b.len < 400; i++) {
            if (i)
                buf_add_text(&b, " ");
            quote_text(&b, m->argv[i], strlen(m->argv[i]), 200);
        }
    }
    snprintf(j->command, sizeof(j->command), "%s", buf_text(&b));
}

/* Before the deed: who, what, where. Values of variables are not the audit's business. */
static int audit_exec(struct kjob *j, const struct msg_exec *m, const char *event, const char *reason, struct pale_err *e)
{
    struct keeper *k = j->k;
    struct json *w = audit_begin(&k->audit, event);
    json_u64(w, "job", j->id);
    if (m->label[0]) {
        json_text(w, "request", m->label);
    } else {
        json_list(w, "argv");
        size_t shown = 0;
        for (size_t i = 0; i < m->argc && shown < AUDIT_ARGV_MAX; i++) {
            size_t n = strnlen(m->argv[i], AUDIT_ARGV_MAX - shown);
            json_bytes(w, NULL, m->argv[i], n);
            shown += n + 1;
        }
        json_end_list(w);
    }
    json_text(w, "cwd", m->cwd);
    if (m->user[0])
        json_text(w, "user", m->user);
    json_bool(w, "tty", m->flags & EXEC_TTY);
    if (j->detached)
        json_bool(w, "detached", true);
    if (reason)
        json_text(w, "reason", reason);
    return audit_commit(&k->audit, e);
}

static int open_log(struct kjob *j, struct pale_err *e)
{
    char path[PATH_BYTES_MAX];
    const char *dir = j->k->state_dir;
    if (!dir)
        return err_set(e, PALE_BAD_INPUT, "a one-shot box has no detached commands; make one with `pale create`");
    snprintf(path, sizeof(path), "%s/job-%llu.log", dir, (unsigned long long)j->id);
    j->log_fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    return j->log_fd < 0 ? err_os(e, "open the job's log %s", path) : 0;
}

static struct kjob *job_new(struct client *c, const struct msg_exec *m)
{
    struct keeper *k = c->k;
    struct kjob *j = calloc(1, sizeof(*j));
    if (!j)
        return NULL;
    *j = (struct kjob){.k = k, .id = ++k->next_job, .chan = JOBS_MAX, .log_fd = -1, .detached = m->flags & EXEC_DETACH};
    j->timeout_ms = m->timeout_ms;
    uint64_t wall = k->policy.limits[LIMIT_WALL].value;
    if (wall && (j->timeout_ms == 0 || wall < j->timeout_ms))
        j->timeout_ms = wall;
    buf_init(&j->request, FRAME_PAYLOAD_MAX);
    show_command(j, m);
    if (k->last_job)
        k->last_job->next = j;
    else
        k->jobs = j;
    k->last_job = j;
    k->job_count++;
    return j;
}

static void out_of_time(struct loop_timer *t);

static void start(struct kjob *j, uint16_t chan)
{
    struct keeper *k = j->k;
    j->chan = chan;
    j->state = JOB_RUNNING;
    j->started_us = clock_us();
    j->started_unix_ms = unix_ms();
    j->in_credit = STDIN_WINDOW;
    j->oom_before = cgroup_oom_kills(&k->cgroup);
    k->by_chan[chan] = j;
    k->running++;
    if (j->timeout_ms) {
        j->timer.fire = out_of_time;
        loop_arm(&k->loop, &j->timer, clock_ms() + (int64_t)(j->timeout_ms < TIMEOUT_MAX_MS ? j->timeout_ms : TIMEOUT_MAX_MS));
    }
    wire_send(k, TO_EXEC, chan, j->request.data, j->request.len);
    buf_done(&j->request);
}

static void start_queued(struct keeper *k)
{
    uint16_t chan = 0;
    for (struct kjob *j = k->jobs; j; j = j->next) {
        if (j->state != JOB_QUEUED)
            continue;
        while (chan < JOBS_MAX && k->by_chan[chan])
            chan++;
        if (chan == JOBS_MAX)
            return;
        start(j, chan);
        if (j->client)
            client_resume(j->client);
    }
}

/* The home folder is closed to everyone but its user, even to the box's root, which has no capability. */
static const char *default_cwd(const struct keeper *k, const struct msg_exec *m)
{
    if (k->policy.project != PROJECT_NONE && k->policy.project_path)
        return k->policy.project_path;
    return m->uid == RUNNER_DEFAULT_ID || m->uid == k->ids.uid ? WALL_HOME : "/";
}

static int prepare(struct keeper *k, struct msg_exec *m, struct pale_err *e)
{
    int r = parse_user(k, m->user, &m->uid, &m->gid, e);
    if (r < 0)
        return r;
    if (m->cwd[0] && m->cwd[0] != '/')
        return err_set(e, PALE_BAD_INPUT, "the working folder must be an absolute path of the box");
    if (m->cwd[0] == 0)
        m->cwd = default_cwd(k, m);
    m->cpu_ms = k->policy.limits[LIMIT_CPU_TIME].value;
    if (is_weak(k->weaken, WEAKEN_LIMITS))
        m->cpu_ms = 0;
    complete_env(k, m);
    return 0;
}

/* Encodes the request for init; the audit is written; the job is ready to start. */
static int admit(struct kjob *j, struct msg_exec *m, struct pale_err *e)
{
    static uint8_t mem[FRAME_PAYLOAD_MAX];
    struct record_writer w;
    int r = j->detached ? open_log(j, e) : 0;
    if (r < 0)
        return r;
    if ((r = audit_exec(j, m, "exec", NULL, e)) < 0)
        return r;
    m->flags &= ~(uint64_t)EXEC_DETACH;
    m->user = m->label = "";
    m->timeout_ms = 0;
    record_start(&w, mem, sizeof(mem));
    msg_exec_write(m, &w);
    if (w.full)
        return err_set(e, PALE_LIMIT, "arguments and environment together are longer than %u bytes", FRAME_PAYLOAD_MAX);
    buf_add(&j->request, mem, w.len);
    return j->request.failed ? err_nomem(e) : 0;
}

static void tell_started(struct client *c, const struct kjob *j)
{
    uint8_t b[8];
    for (int i = 0; i < 8; i++)
        b[i] = (uint8_t)(j->id >> (8 * i));
    client_send(c, TELL_STARTED, b, sizeof(b));
}

void work_exec(struct client *c, const void *p, size_t n)
{
    static struct msg_exec m;
    struct keeper *k = c->k;
    struct pale_err e = {0};
    if (!msg_exec_parse(p, n, &m)) {
        client_error(c, PALE_PROTOCOL, "the request cannot be read");
        return;
    }
    struct kjob *j = k->stopping || k->died ? NULL : job_new(c, &m);
    if (!j) {
        client_error(c, k->stopping || k->died ? PALE_GONE : PALE_NO_MEMORY,
                     k->stopping || k->died ? "the box is ending; try again" : "out of memory");
        return;
    }
    if (prepare(k, &m, &e) < 0 || admit(j, &m, &e) < 0) {
        (void)!audit_exec(j, &m, "exec.refused", e.text, NULL);
        job_free(j);
        client_error(c, e.code, e.text);
        return;
    }
    if (j->detached) {
        tell_started(c, j);
        client_finish(c);
    } else {
        j->client = c;
        c->job = j;
    }
    start_queued(k);
}

void work_stdin(struct kjob *j, const void *p, size_t n)
{
    if (j->state != JOB_RUNNING)
        return;
    j->in_credit -= n;
    wire_send(j->k, TO_STDIN, j->chan, p, n);
}

void work_pay_credit(struct kjob *j)
{
    /* Half a window at a time keeps the wire quiet; the other half keeps the command going. */
    if (j->state != JOB_RUNNING || j->window_used < STREAM_WINDOW / 2 || (j->client && j->client->out.len > STREAM_WINDOW))
        return;
    uint64_t v = j->window_used;
    j->window_used = 0;
    wire_send_u64(j->k, TO_CREDIT, j->chan, v);
}

/* Log files hold frames: a type and a length before each piece, so that both streams come back apart. */
static void log_output(struct kjob *j, bool is_err, const uint8_t *p, size_t n)
{
    uint8_t head[FRAME_HEAD];
    if (j->log_fd < 0)
        return;
    if (j->log_bytes + n > JOB_LOG_MAX) {
        j->dropped_bytes += n;
        return;
    }
    frame_put_head(head, is_err ? TELL_STDERR : TELL_STDOUT, 0, (uint32_t)n);
    if (!fd_write_full(j->log_fd, head, sizeof(head)) || !fd_write_full(j->log_fd, p, n)) {
        j->dropped_bytes += n;
        own_close(&j->log_fd); /* the disk is full; the job goes on */
        return;
    }
    j->log_bytes += n;
    for (struct client *c = j->k->clients; c; c = c->next)
        if (c->waiting == j && c->following && c->out.len == 0)
            work_send_log(c);
}

void work_output(struct kjob *j, bool is_err, const uint8_t *p, size_t n)
{
    struct keeper *k = j->k;
    uint64_t most = is_weak(k->weaken, WEAKEN_OUTPUT) ? 0 : k->policy.limits[LIMIT_OUTPUT].value;
    size_t keep = n;
    j->window_used += n;
    if (most && j->out_bytes + n > most)
        keep = j->out_bytes >= most ? 0 : (size_t)(most - j->out_bytes);
    j->out_bytes += keep;
    j->dropped_bytes += n - keep;
    if (keep > 0 && j->detached)
        log_output(j, is_err, p, keep);
    else if (keep > 0 && j->client)
        client_send(j->client, is_err ? TELL_STDERR : TELL_STDOUT, p, keep);
    work_pay_credit(j);
}

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

/* What a shell would show, with our own codes for limits. */
static void set_status(struct kjob *j, const struct msg_exit *x)
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
    } else if (x->flags & EXIT_CPU_LIMIT) {
        r->flags |= RESULT_CPU_LIMIT;
        snprintf(j->message, sizeof(j->message), "killed: it used its %s of CPU time",
                 number_show_ms(k->policy.limits[LIMIT_CPU_TIME].value, text, sizeof(text)));
    } else if (j->out_of_memory || cgroup_oom_kills(&k->cgroup) > j->oom_before) {
        r->flags |= RESULT_OOM;
        snprintf(j->message, sizeof(j->message), "out of memory: the box's limit is %s",
                 number_show_bytes(k->policy.limits[LIMIT_MEMORY].value, text, sizeof(text)));
    } else if (x->flags & EXIT_KILLED) {
        r->flags |= RESULT_KILLED;
    }
}

static void audit_end(struct kjob *j)
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

/* The job is over for everyone who listens. */
static void finish(struct kjob *j)
{
    uint8_t mem[1024];
    struct record_writer w;
    struct keeper *k = j->k;
    j->state = JOB_ENDED;
    k->ended++;
    loop_disarm(&k->loop, &j->timer);
    j->result.time_us = (uint64_t)(clock_us() - j->started_us);
    j->result.out_bytes = j->out_bytes;
    j->result.dropped_bytes = j->dropped_bytes;
    if (j->dropped_bytes)
        j->result.flags |= RESULT_TRUNCATED;
    j->result.message = j->message;
    struct client *c = j->client;
    if (c) {
        record_start(&w, mem, sizeof(mem));
        msg_result_write(&j->result, &w);
        c->job = NULL;
        j->client = NULL;
        client_send(c, TELL_RESULT, mem, w.len);
        client_finish(c);
    }
    audit_end(j);
    for (struct client *other = k->clients, *next; other; other = next) {
        next = other->next;
        if (other->waiting != j || (other->following && !work_send_log(other)))
            continue;
        static uint8_t job_mem[2048];
        struct msg_job m;
        work_tell(j, &m);
        record_start(&w, job_mem, sizeof(job_mem));
        msg_job_write(&m, &w);
        client_send(other, TELL_JOB, job_mem, w.len);
        client_send(other, TELL_DONE, NULL, 0);
        client_finish(other);
    }
}

void work_exit(struct kjob *j, const struct msg_exit *x)
{
    j->result = (struct msg_result){.cpu_us = x->cpu_us, .peak_kib = x->peak_kib};
    if (j->k->once) {
        /* The cgroup of a one-shot box knows the peak of the whole tree. */
        uint64_t peak = cgroup_peak_bytes(&j->k->cgroup) / 1024;
        if (peak > j->result.peak_kib)
            j->result.peak_kib = peak;
    }
    set_status(j, x);
    /* The only command of a one-shot box has ended: its box begins to die while the result travels. */
    if (j->k->once)
        kill(j->k->wall.pid, SIGKILL);
    finish(j);
    if (j->k->once)
        keeper_stop(j->k);
}

void work_gone(struct kjob *j)
{
    struct keeper *k = j->k;
    k->by_chan[j->chan] = NULL;
    j->chan = JOBS_MAX;
    k->running--;
    loop_disarm(&k->loop, &j->kill_timer);
    forget_old(k);
    start_queued(k);
}

static void kill_failed(struct loop_timer *t)
{
    struct kjob *j = (struct kjob *)((char *)t - offsetof(struct kjob, kill_timer));
    keeper_box_died(j->k, "a command could not be killed in time; the whole box was ended");
}

void work_kill(struct kjob *j)
{
    struct keeper *k = j->k;
    if (j->state == JOB_QUEUED) {
        j->started_us = clock_us();
        j->result = (struct msg_result){.flags = RESULT_KILLED, .status = 137, .signal = SIGKILL};
        finish(j); /* forgotten with the next job that ends: the caller may still speak of it */
        return;
    }
    if (j->chan == JOBS_MAX || j->killed)
        return;
    j->killed = true;
    wire_send(k, TO_KILL, j->chan, NULL, 0);
    j->kill_timer.fire = kill_failed;
    loop_arm(&k->loop, &j->kill_timer, clock_ms() + KILL_GRACE_MS);
}

static void out_of_time(struct loop_timer *t)
{
    struct kjob *j = (struct kjob *)((char *)t - offsetof(struct kjob, timer));
    j->timed_out = true;
    work_kill(j);
}

void work_client_left(struct kjob *j)
{
    if (j->detached || j->state == JOB_ENDED)
        return;
    if (j->state == JOB_RUNNING)
        wire_send(j->k, TO_CLOSE, j->chan, NULL, 0);
    work_kill(j);
}

void work_box_died(struct keeper *k, const char *why)
{
    for (struct kjob *j = k->jobs; j; j = j->next) {
        if (j->chan != JOBS_MAX) {
            k->by_chan[j->chan] = NULL;
            j->chan = JOBS_MAX;
            k->running--;
        }
        if (j->state == JOB_ENDED)
            continue;
        if (j->state == JOB_QUEUED)
            j->started_us = clock_us();
        j->result = (struct msg_result){.flags = RESULT_KILLED, .status = j->timed_out ? 124 : 137, .signal = SIGKILL};
        if (j->timed_out)
            j->result.flags |= RESULT_TIMEOUT;
        snprintf(j->message, sizeof(j->message), "%s", why);
        finish(j);
    }
}

void work_tell(const struct kjob *j, struct msg_job *ret)
{
    bool ended = j->state == JOB_ENDED;
    *ret = (struct msg_job){
        .id = j->id,
        .pid = j->pid,
        .state = j->state,
        .started_unix_ms = j->started_unix_ms,
        .time_us = ended                     ? j->result.time_us
                   : j->state == JOB_RUNNING ? (uint64_t)(clock_us() - j->started_us)
                                             : 0,
        .status = j->result.status,
        .signal = j->result.signal,
        .flags = j->result.flags,
        .cpu_us = j->result.cpu_us,
        .peak_kib = j->result.peak_kib,
        .out_bytes = j->out_bytes,
        .dropped_bytes = j->dropped_bytes,
        .detached = j->detached,
        .command = j->command,
        .message = j->message,
    };
}

/* Copies what of the log the client has not seen, as much as its buffer takes. False if there is nothing to read from. */
bool work_send_log(struct client *c)
{
    struct kjob *j = c->waiting;
    uint8_t block[16384];
    if (!j || j->log_fd < 0) {
        if (j && !j->detached)
            client_error(c, PALE_BAD_INPUT, "only detached commands have logs");
        return j && j->detached;
    }
    while (c->out.len < STREAM_WINDOW) {
        ssize_t n = pread(j->log_fd, block, sizeof(block), (off_t)c->log_at);
        if (n <= 0)
            break;
        c->log_at += (uint64_t)n;
        /* The file is made of frames already; the client reads them as they are. */
        buf_add(&c->out, block, (size_t)n);
    }
    client_flush(c);
    return true;
}
