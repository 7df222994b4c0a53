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
#include "base/sha256.h"
#include "confine/weaken.h"
#include "init/runner.h"
#include "keeper/keeper.h"
#include "keeper/watchdog.h"
#include "wire/frame.h"

extern char **environ;

#define ERROR_SHARE_LEAST 4096u

/* A year; more is for ever, and must not overflow a clock. */
#define TIMEOUT_MAX_MS (366ull * 24 * 3600 * 1000)

/* Bytes of a command line in an audit record: every one may take six when written as JSON. */
#define AUDIT_ARGV_MAX (AUDIT_RECORD_MAX / 8)

struct kjob *work_find(struct keeper *k, uint64_t id)
{
    for (struct kjob *j = k->jobs; j; j = j->next)
        if (j->id == id)
            return j;
    return NULL;
}

static struct kjob *find_key(struct keeper *k, const char *key)
{
    for (struct kjob *j = k->jobs; j; j = j->next)
        if (strcmp(j->key, key) == 0)
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
    spool_done(&j->log);
    buf_done(&j->request);
    free(k->idle_job);
    k->idle_job = j;
}

/* Jobs that last are remembered for wait, logs and attach, the oldest forgotten first; others end with their client. */
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
        if (!waited && (!j->lasts || ended > JOBS_REMEMBERED)) {
            spool_forget(&j->log);
            job_free(j);
            ended--;
        }
    }
}

static struct kjob *job_new(struct client *c, const struct msg_exec *m)
{
    struct keeper *k = c->k;
    struct kjob *j = k->idle_job ? k->idle_job : malloc(sizeof(*j));
    k->idle_job = NULL;
    if (!j)
        return NULL;
    memset(j, 0, sizeof(*j));
    j->k = k;
    j->id = ++k->next_job;
    j->chan = JOBS_MAX;
    j->log.fd = -1;
    j->detached = m->flags & EXEC_DETACH;
    j->lasts = m->flags & (EXEC_DETACH | EXEC_LAST);
    j->once = m->flags & (EXEC_ONCE | EXEC_BRIEF);
    j->brief = m->flags & EXEC_BRIEF;
    j->tty = m->flags & EXEC_TTY;
    j->takes_input = m->flags & (EXEC_STDIN | EXEC_TTY);
    j->timeout_ms = m->timeout_ms;
    uint64_t wall = k->policy.limits[LIMIT_WALL].value;
    if (wall && (j->timeout_ms == 0 || wall < j->timeout_ms))
        j->timeout_ms = wall;
    buf_init(&j->request, FRAME_PAYLOAD_MAX);
    request_show(m, j->command, sizeof(j->command));
    if (k->last_job)
        k->last_job->next = j;
    else
        k->jobs = j;
    k->last_job = j;
    k->job_count++;
    return j;
}

static void out_of_time(struct loop_timer *t);

static void start(struct kjob *j, uint16_t chan, const void *request, size_t n)
{
    struct keeper *k = j->k;
    j->chan = chan;
    j->state = JOB_RUNNING;
    j->started_us = clock_us();
    j->started_unix_ms = clock_unix_ms();
    j->in_credit = STDIN_WINDOW;
    k->by_chan[chan] = j;
    k->running++;
    cputime_started(j);
    watchdog_wake(k);
    if (j->timeout_ms) {
        j->timer.fire = out_of_time;
        loop_arm(&k->loop, &j->timer, clock_ms() + (int64_t)(j->timeout_ms < TIMEOUT_MAX_MS ? j->timeout_ms : TIMEOUT_MAX_MS));
    }
    warding_started(k);
    wire_send(k, TO_EXEC, chan, request, n);
    client_announce(k, j);
    j->oom_before = cgroup_oom_kills(&k->cgroup); /* it cannot have used memory yet */
}

static uint16_t free_chan(const struct keeper *k, uint16_t from)
{
    while (from < JOBS_MAX && k->by_chan[from])
        from++;
    return from;
}

void work_start_queued(struct keeper *k)
{
    uint16_t chan = 0;
    if (k->freeze.state != FREEZE_NOT)
        return;
    for (struct kjob *j = k->jobs; j; j = j->next) {
        if (j->state != JOB_QUEUED)
            continue;
        chan = free_chan(k, chan);
        if (chan == JOBS_MAX)
            return;
        start(j, chan, j->request.data, j->request.len);
        buf_done(&j->request);
        if (j->client)
            client_resume(j->client);
        if (j->feeder)
            client_resume(j->feeder);
    }
}

/* Encodes the request for init; the audit is written; the job has started, or waits for a channel behind those that came before
 * it. */
static int admit(struct kjob *j, struct msg_exec *m, struct pale_err *e)
{
    static uint8_t mem[FRAME_PAYLOAD_MAX];
    struct keeper *k = j->k;
    struct record_writer w;
    int r = j->lasts ? joblog_open(j, e) : 0;
    if (r < 0)
        return r;
    if ((r = request_audit(j, m, "exec", NULL, e)) < 0)
        return r;
    m->flags &= ~(uint64_t)(EXEC_DETACH | EXEC_LAST | EXEC_ONCE | EXEC_BRIEF);
    m->user = m->label = m->key = "";
    m->timeout_ms = 0;
    m->heldc = 0; /* the log has them */
    record_start(&w, mem, sizeof(mem));
    msg_exec_write(m, &w);
    if (w.full)
        return err_set(e, PALE_LIMIT, "arguments and environment together are longer than %u bytes", FRAME_PAYLOAD_MAX);
    uint16_t chan = free_chan(k, 0); /* free only if nobody waits */
    if (chan < JOBS_MAX && k->freeze.state == FREEZE_NOT) {
        start(j, chan, mem, w.len);
        return 0;
    }
    buf_add(&j->request, mem, w.len);
    return j->request.failed ? err_nomem(e) : 0;
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
    struct kjob *j = NULL;
    uint8_t asked[SHA256_BYTES];
    if (m.key[0]) {
        if (!(m.flags & EXEC_LAST) || strlen(m.key) > JOB_KEY_MAX) {
            client_error(c, PALE_BAD_INPUT, "a key is for commands that last, and no longer than 128 bytes");
            return;
        }
        struct sha256 h;
        sha256_init(&h);
        sha256_add(&h, p, n);
        sha256_add(&h, c->input, strlen(c->input));
        sha256_final(&h, asked);
        if ((j = find_key(k, m.key))) {
            if (memcmp(j->asked, asked, sizeof(asked)) != 0)
                client_error(c, PALE_EXISTS, "that key was used for another command already");
            else
                work_attach(c, j, 0);
            return;
        }
    }
    j = k->stopping || k->died ? NULL : job_new(c, &m);
    if (!j) {
        client_error(c, k->stopping || k->died ? PALE_GONE : PALE_NO_MEMORY,
                     k->stopping || k->died ? "the box is ending; try again" : "out of memory");
        return;
    }
    if (m.key[0]) {
        memcpy(j->asked, asked, sizeof(asked));
        snprintf(j->key, sizeof(j->key), "%s", m.key);
    }
    /* Before it starts: should the box die of it, this client is told. */
    if (!j->detached) {
        j->client = c;
        c->job = j;
    }
    if (request_prepare(k, &m, &e) < 0 || admit(j, &m, &e) < 0) {
        (void)!request_audit(j, &m, "exec.refused", e.text, NULL);
        c->job = NULL;
        job_free(j);
        client_error(c, e.code, e.text);
    } else if (j->detached) {
        client_tell_u64(c, TELL_STARTED, j->id);
        client_finish(c);
    } else if (j->lasts && c->job == j) {
        client_tell_u64(c, TELL_STARTED, j->id);
    }
}

void work_attach(struct client *c, struct kjob *j, uint64_t offset)
{
    if (!j->lasts) {
        client_error(c, PALE_BAD_INPUT, "that command belongs to the connection that started it");
        return;
    }
    struct client *old = j->client;
    j->client = c;
    c->job = j;
    if (old) {
        old->job = NULL;
        client_error(old, PALE_BUSY, "somebody else has attached to the command");
    }
    client_tell_job(c, j); /* what it was given already, for who has more of it */
    client_tell_u64(c, TELL_STARTED, j->id);
    joblog_begin(c, j, offset);
    joblog_send(c);
    work_pay_credit(c->job);
}

void work_stdin(struct kjob *j, const void *p, size_t n)
{
    if (j->state != JOB_RUNNING)
        return;
    j->in_credit -= n;
    j->in_bytes += n;
    wire_send(j->k, TO_STDIN, j->chan, p, n);
}

void work_pay_credit(struct kjob *j)
{
    /* Half a window at a time keeps the wire quiet; the other half keeps the command going. */
    if (!j || j->state != JOB_RUNNING || j->window_used < STREAM_WINDOW / 2)
        return;
    const struct client *c = j->client;
    if (c && c->out.len + (j->lasts ? j->log.end - c->log_at.at : 0) > STREAM_WINDOW)
        return;
    uint64_t v = j->window_used;
    j->window_used = 0;
    wire_send_u64(j->k, TO_CREDIT, j->chan, v);
}

/* How many of n bytes are kept after so many. */
static size_t output_kept(const struct keeper *k, uint64_t before, size_t n)
{
    uint64_t most = is_weak(k->weaken, WEAKEN_OUTPUT) ? 0 : k->policy.limits[LIMIT_OUTPUT].value;
    if (most == 0 || before + n <= most)
        return n;
    return before >= most ? 0 : (size_t)(most - before);
}

/* So much of standard error is kept in any case, beside the bound if standard output has filled that: it is where the reason stands. */
static uint64_t error_share(const struct keeper *k)
{
    uint64_t share = k->policy.limits[LIMIT_OUTPUT].value / 16;
    return share < ERROR_SHARE_LEAST ? ERROR_SHARE_LEAST : share;
}

bool work_holds_output(const struct keeper *k)
{
    uint64_t most = k->policy.limits[LIMIT_OUTPUT].value;
    return output_kept(k, 0, most) == most && output_kept(k, 0, most + 1) == most && output_kept(k, most, 1) == 0;
}

void work_output(struct kjob *j, bool is_err, const uint8_t *p, size_t n)
{
    size_t keep = output_kept(j->k, j->out_bytes - j->err_beside, n);
    if (is_err && keep < n && j->err_bytes + keep < error_share(j->k)) {
        uint64_t room = error_share(j->k) - j->err_bytes - keep;
        size_t more = n - keep < room ? n - keep : (size_t)room;
        j->err_beside += more;
        keep += more;
    }
    j->err_bytes += is_err ? keep : 0;
    j->window_used += n;
    j->out_bytes += keep;
    j->dropped_bytes += n - keep;
    if (keep > 0 && j->lasts)
        joblog_add(j, is_err, p, keep);
    else if (keep > 0 && j->client)
        client_send(j->client, is_err ? TELL_STDERR : TELL_STDOUT, p, keep);
    work_pay_credit(j);
}

void work_tell_result(struct client *c, struct kjob *j)
{
    uint8_t mem[1024];
    struct record_writer w;
    record_start(&w, mem, sizeof(mem));
    msg_result_write(&j->result, &w);
    c->job = NULL;
    j->client = NULL;
    if (j->once && (!j->brief || j->out_bytes <= EXEC_BRIEF_BYTES))
        joblog_release(j);
    client_send(c, TELL_RESULT, mem, w.len);
    client_finish(c);
}

/* The job is over for everyone who listens. */
static void finish(struct kjob *j)
{
    struct keeper *k = j->k;
    j->state = JOB_ENDED;
    k->ended++;
    j->result.time_us = (uint64_t)(clock_us() - j->started_us);
    j->result.out_bytes = j->out_bytes;
    j->result.dropped_bytes = j->dropped_bytes;
    if (j->dropped_bytes)
        j->result.flags |= RESULT_TRUNCATED;
    j->result.message = j->message;
    result_audit(j); /* before anybody is told */
    client_announce(k, j);
    struct client *c = j->client;
    if (c && !j->lasts)
        work_tell_result(c, j);
    else if (c && c->out.len == 0)
        joblog_send(c); /* the rest of its output first */
    for (struct client *other = k->clients, *next; other; other = next) {
        next = other->next;
        if (other->waiting != j)
            continue;
        if (!other->following)
            client_tell_end(other, j);
        else if (other->out.len == 0)
            joblog_send(other);
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
    result_set(j, x);
    /* The only command of a one-shot box has ended: its box begins to die while the result travels. */
    if (j->k->once)
        kill(j->k->wall.pid, SIGKILL);
    warding_catch_up(j->k);
    struct client *c = j->client;
    finish(j);
    if (j->k->once)
        keeper_stop(j->k);
    else if (c && c->out.len == 0 && !j->takes_input)
        client_drop(c); /* it has its result and sends nothing more: it need not wake us once again to say so */
}

void work_gone(struct kjob *j)
{
    struct keeper *k = j->k;
    k->by_chan[j->chan] = NULL;
    j->chan = JOBS_MAX;
    k->running--;
    /* Only now: what a command leaves running is held to its time too. */
    loop_disarm(&k->loop, &j->timer);
    loop_disarm(&k->loop, &j->kill_timer);
    forget_old(k);
    work_start_queued(k);
    warding_idle(k);
    freeze_resume(k);
}

static void kill_failed(struct loop_timer *t)
{
    struct kjob *j = (struct kjob *)((char *)t - offsetof(struct kjob, kill_timer));
    keeper_box_died(j->k, "a command could not be killed in time; the whole box was ended");
}

/* Should it end of this, the audit says who meant it to. */
static void note_ender(struct kjob *j)
{
    if (j->k->audit.caller)
        snprintf(j->ender, sizeof(j->ender), "%s", j->k->audit.caller);
}

void work_signal(struct kjob *j, uint64_t signal)
{
    note_ender(j);
    wire_send_u64(j->k, TO_SIGNAL, j->chan, signal);
}

void work_kill(struct kjob *j)
{
    struct keeper *k = j->k;
    note_ender(j);
    if (j->state == JOB_QUEUED) {
        j->started_us = clock_us();
        j->result = (struct msg_result){.flags = RESULT_KILLED, .status = 137, .signal = SIGKILL};
        finish(j); /* forgotten with the next job that ends: the caller may still speak of it */
        return;
    }
    if (j->chan == JOBS_MAX || j->killed)
        return;
    j->killed = true;
    freeze_lift(k);
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
    if (j->lasts || j->state == JOB_ENDED) {
        work_pay_credit(j); /* nobody holds it up any more */
        return;
    }
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
        .lasts = j->lasts,
        .tty = j->tty,
        .in_bytes = j->in_bytes,
        .key = j->key,
        .command = j->command,
        .message = j->message,
    };
}

bool work_is_empty(const struct keeper *k)
{
    for (const struct kjob *j = k->jobs; j; j = j->next)
        if (j->state != JOB_ENDED || j->chan != JOBS_MAX)
            return false;
    return true;
}
