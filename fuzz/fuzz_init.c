/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: init's side of the wire. The input is a run of steps: bytes from the keeper, reports of runners, output of commands,
 * turns. Processes are not started: runners are numbers here, and killing is noted. What init sends is read by the strict parsers
 * of the other side, and never breaks the credit it was given. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "init/freezer.h"
#include "init/job.h"
#include "init/reaper.h"
#include "init/spare.h"
#include "input.h"

static struct link wire;
static struct jobs jobs;
static int64_t now_us;
static int held_out[JOBS_MAX]; /* by slot: the command's end of its output */
static uint64_t credit[JOBS_MAX];
static bool running[JOBS_MAX]; /* by channel, as the keeper sees it */
static bool ended[JOBS_MAX];
static int next_pid;
static uint32_t begun[JOBS_MAX];

/* --- in place of the clock, processes and signals --- */

int64_t clock_us(void)
{
    return now_us;
}

int64_t clock_ms(void)
{
    return now_us / 1000;
}

static pid_t start(uint32_t slot, const struct msg_exec *m, const struct runner_stdio *io)
{
    assert(slot < JOBS_MAX && (!m || (m->argc > 0 && m->argv[0] && !m->argv[m->argc])));
    if (held_out[slot] >= 0)
        close(held_out[slot]);
    int from = io->out >= 0 ? io->out : io->terminal;
    held_out[slot] = from < 0 ? -1 : fcntl(from, F_DUPFD_CLOEXEC, 10);
    if (next_pid % 16 == 15) /* now and then there is no process left */
        return next_pid++, errno = EAGAIN, -1;
    return next_pid++;
}

pid_t runner_start(const struct runner_setup *s, uint32_t slot, uint32_t generation, const struct msg_exec *m,
                   const struct runner_stdio *io)
{
    (void)s, (void)generation;
    return start(slot, m, io);
}

pid_t runner_start_bare(const struct runner_setup *s, uint32_t slot, uint32_t generation, const struct msg_exec *m,
                        const struct runner_stdio *io)
{
    (void)s, (void)generation;
    return start(slot, m, io);
}

pid_t runner_start_spare(const struct runner_setup *s, uint32_t slot, uint32_t generation, int request_fd, const struct runner_probe *probe,
                         const struct runner_stdio *io)
{
    static const struct probe_report report;
    (void)s, (void)generation, (void)request_fd;
    /* A prober reports whole, in part or never. */
    if (probe && next_pid % 3)
        (void)!write(probe->report_fd, &report, next_pid % 3 == 1 ? sizeof(report) : 9);
    return start(slot, NULL, io);
}

void runner_close_stdio(struct runner_stdio *io)
{
    own_close(&io->in);
    own_close(&io->out);
    own_close(&io->err);
    own_close(&io->terminal);
}

bool runner_spare_fits(const struct msg_exec *m, size_t n)
{
    return m->uid == RUNNER_DEFAULT_ID && !(m->flags & EXEC_TTY) && n <= RUNNER_SPARE_MAX;
}

void reaper_signal(struct job *j, int sig)
{
    assert(sig >= 1 && sig <= 64);
    j->pending_signal = j->command ? 0 : sig;
}

void reaper_wake(const struct job *j)
{
    assert(j->phase == PHASE_SPARE);
}

void reaper_start(struct job *j)
{
    j->killing = true;
    j->kill_rounds = -1;
}

int64_t reaper_tick(struct jobs *js)
{
    (void)js;
    return -1;
}

/* Nobody is stopped here; what is asked must make sense. */
bool freezer_message(struct jobs *js, const struct frame *f)
{
    uint64_t number;
    if (f->chan != 0 || (f->type == TO_FREEZE ? !msg_u64_parse(f->data, f->len, &number) : f->len != 0))
        return false;
    js->hold = f->type == TO_FREEZE ? HOLD_SEEKING : HOLD_NOT;
    return true;
}

void freezer_again(struct jobs *js)
{
    js->hold = js->hold == HOLD_NOT ? HOLD_NOT : HOLD_SEEKING;
}

int64_t freezer_tick(struct jobs *js)
{
    assert(js->hold != HOLD_NOT);
    js->hold = HOLD_DONE;
    return 1000000;
}

/* --- what init says --- */

UNSEEN static void heard(const struct frame *f)
{
    struct msg_exit x;
    uint64_t v;
    if (f->type == FROM_PROBE) {
        assert(f->chan == 0 && (f->len == 0 || f->len == sizeof(struct probe_report)));
        return;
    }
    assert(f->chan < JOBS_MAX && running[f->chan]);
    switch (f->type) {
    case FROM_STARTED:
        assert(msg_u64_parse(f->data, f->len, &v) && v > 0);
        break;
    case FROM_STDOUT:
    case FROM_STDERR:
        assert(!ended[f->chan] && f->len > 0 && f->len <= FRAME_DATA_MAX && f->len <= credit[f->chan]);
        credit[f->chan] -= f->len;
        break;
    case FROM_STDIN_CREDIT:
        assert(msg_u64_parse(f->data, f->len, &v) && v <= STDIN_WINDOW);
        break;
    case FROM_EXIT:
        assert(!ended[f->chan] && msg_exit_parse(f->data, f->len, &x));
        ended[f->chan] = true;
        running[f->chan] = !(x.flags & EXIT_GONE);
        break;
    case FROM_GONE:
        assert(ended[f->chan] && f->len == 0);
        running[f->chan] = false;
        break;
    default:
        assert(false);
    }
}

UNSEEN static void read_wire(void)
{
    size_t at = 0, used;
    struct frame f;
    while (frame_parse(wire.out + at, wire.out_len - at, &f, &used) == 1) {
        heard(&f);
        at += used;
    }
    assert(at == wire.out_len);
    wire.out_len = 0;
}

/* --- steps --- */

/* A frame that init takes changes what the keeper may expect; noted before, since the answer can come at once. */
static bool give(const struct frame *f)
{
    if (f->type == TO_EXEC)
        read_wire(); /* a keeper uses a channel again when it has read that it is free */
    bool is_new = f->type == TO_EXEC && f->chan < JOBS_MAX && !running[f->chan] && jobs.setup.config.version;
    struct job *j = f->chan < JOBS_MAX && jobs.slot_of[f->chan] != JOB_NONE ? &jobs.job[jobs.slot_of[f->chan]] : NULL;
    uint64_t v, had = j ? j->credit : 0;
    if (is_new) {
        running[f->chan] = true;
        ended[f->chan] = false;
        credit[f->chan] = STREAM_WINDOW;
    }
    bool good = jobs_message(&jobs, f);
    if (good && f->type == TO_CREDIT && j && msg_u64_parse(f->data, f->len, &v)) {
        assert(j->credit == had + v);
        credit[f->chan] += v;
    }
    if (is_new && !good)
        running[f->chan] = false;
    return good;
}

static bool put_bytes(const void *p, size_t n)
{
    struct frame f;
    int got;
    if (wire.in_start > 0)
        memmove(wire.in, wire.in + wire.in_start, wire.in_len);
    wire.in_start = 0;
    if (n > sizeof(wire.in) - wire.in_len)
        n = sizeof(wire.in) - wire.in_len;
    if (n)
        memcpy(wire.in + wire.in_len, p, n);
    wire.in_len += n;
    while ((got = link_next(&wire, &f)) == 1)
        if (!give(&f))
            return false;
    return got == 0;
}

static bool put_frame(uint8_t type, uint16_t chan, const void *p, size_t n)
{
    uint8_t head[FRAME_HEAD];
    frame_put_head(head, type, chan, (uint32_t)n);
    return put_bytes(head, sizeof(head)) && put_bytes(p, n);
}

static bool put_exec(struct input *in)
{
    static uint8_t mem[8192];
    static struct msg_exec m;
    struct record_writer w;
    char word[64];
    uint16_t chan = input_byte(in);
    m = (struct msg_exec){.flags = input_byte(in) & EXEC_FLAGS_ALL & ~(unsigned)EXEC_DETACH, .user = "", .cwd = "/", .label = ""};
    m.uid = m.gid = input_byte(in) & 1 ? RUNNER_DEFAULT_ID : 1000;
    if (input_byte(in) & 15)
        m.flags &= ~(uint64_t)EXEC_TTY; /* terminals are dear */
    input_text(in, word, sizeof(word));
    m.argv[m.argc++] = word;
    m.argv[m.argc] = NULL;
    m.env[m.envc++] = "A=b";
    record_start(&w, mem, sizeof(mem));
    msg_exec_write(&m, &w);
    return put_frame(TO_EXEC, chan, mem, w.len);
}

static bool put_config(struct input *in)
{
    uint8_t mem[256], b = input_byte(in);
    struct record_writer w;
    struct msg_config c = {.version = WIRE_VERSION, .uid = 1000, .gid = 1000, .spare = b & 1, .solo = (b & 6) == 2, .processes = b >> 3};
    record_start(&w, mem, sizeof(mem));
    msg_config_write(&c, &w);
    return put_frame(TO_CONFIG, 0, mem, w.len);
}

static void report(struct input *in)
{
    uint8_t slot = input_byte(in), b = input_byte(in);
    struct job *j = &jobs.job[slot];
    struct report r = {.slot = slot, .generation = j->generation - (b >> 7), .kind = 1 + b % 3, .value = (int32_t)input_number(in, 2)};
    r.last = b & 16;
    r.stage = b >> 5;
    if (r.kind == REPORT_PID)
        r.value |= 1;
    job_report(&jobs, &r);
}

/* As init/reaper.c does when it has reaped one. */
static void runner_ended(struct job *j)
{
    if (j->phase == PHASE_FREE || jobs.setup.config.solo)
        return;
    j->runner = 0;
    if (j->phase == PHASE_SPARE || (!j->exited && spare_rescue(&jobs, j)))
        job_free(&jobs, j);
    else if (!j->exited)
        j->exited = true;
}

UNSEEN static void turn(void)
{
    static struct pollfd fds[JOBS_POLL_MAX];
    int n = jobs_poll(&jobs, fds);
    assert(n <= JOBS_POLL_MAX);
    for (int i = 0; i < n; i++)
        fds[i].revents = fds[i].events; /* reading what is not ready gives EAGAIN, as after any other spurious wake */
    jobs_polled(&jobs, fds);
    (void)jobs_tick(&jobs);
    if (jobs.probe_read_fd >= 0)
        spare_probed(&jobs);
    assert(jobs.spares <= SPARES_MAX && jobs.running >= 0);
}

static bool step(struct input *in)
{
    static const uint8_t zeros[2048];
    size_t n;
    const uint8_t *p;
    uint8_t op = input_byte(in), slot;
    switch (op % 10) {
    case 0:
        p = input_bytes(in, input_byte(in), &n);
        return put_bytes(p, n);
    case 1:
    case 2:
        slot = input_byte(in);
        p = input_bytes(in, input_byte(in), &n);
        return put_frame(op >> 4, slot, p, n);
    case 3:
    case 4:
        return put_exec(in);
    case 5:
        report(in);
        return true;
    case 6:
        slot = input_byte(in);
        begun[slot] = jobs.job[slot].generation;
        if (held_out[slot] >= 0)
            (void)!write(held_out[slot], zeros, 1 + input_byte(in));
        return true;
    case 7:
        now_us += (int64_t)1 << (input_byte(in) % 24);
        turn();
        return true;
    case 8:
        runner_ended(&jobs.job[input_byte(in)]);
        turn();
        return true;
    default:
        turn();
        read_wire();
        return true;
    }
}

UNSEEN static void reset(void)
{
    static bool made;
    static int report_pipe[2];
    static struct job none[JOBS_MAX];
    if (!made) {
        assert(pipe2(report_pipe, O_CLOEXEC | O_NONBLOCK) == 0);
        made = true;
        signal(SIGPIPE, SIG_IGN);
        memset(held_out, 0xff, sizeof(held_out));
    }
    for (int i = 0; i < JOBS_MAX; i++) {
        if (jobs.job[i].phase != PHASE_FREE)
            job_free(&jobs, &jobs.job[i]);
        if (held_out[i] >= 0)
            close(held_out[i]);
        held_out[i] = -1;
    }
    if (made && jobs.probe_read_fd > 0)
        own_close(&jobs.probe_read_fd);
    memcpy(jobs.job, none, sizeof(none));
    memset(&jobs, 0, offsetof(struct jobs, job));
    memset(running, 0, sizeof(running));
    wire.in_start = wire.in_len = wire.out_len = 0;
    now_us = 1000000;
    next_pid = 1 << 30;
    memset(begun, 0, sizeof(begun));
    jobs_init(&jobs, &wire, -1, -1, report_pipe, begun);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    reset();
    if (!put_config(&in))
        return 0;
    for (int i = 0; i < 64 && in.left; i++)
        if (!step(&in))
            break; /* the box ends */
    turn();
    read_wire();
    return 0;
}
