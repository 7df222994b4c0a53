/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the table of jobs: requests in, output and exits out, input on the way.
 *
 * How it works: the keeper names a job by a channel; init keeps it in a slot (a spare has a slot before it has a channel). A
 * job is RUNNING until its command has ended and the output that stood in its pipes is sent; then FROM_EXIT goes out. If
 * descendants live on it LINGERS, its output thrown away, until its runner ends and FROM_GONE frees the channel. Output is read
 * only while there is credit and room, so that a slow reader stops its own command and nobody else. Killing is in
 * init/reaper.c. */
#include "init/job.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "init/freezer.h"
#include "init/reaper.h"
#include "init/room.h"
#include "init/spare.h"
#include "policy/policy.h"

#define AWAIT_BEGIN_US 200
#define TELL_PID_US 20000
#define MISSES_MAX 100

static void job_reset(struct job *j)
{
    uint32_t generation = j->generation + 1;
    *j = (struct job){.generation = generation, .request_fd = -1, .in_fd = -1, .out_fd = -1, .err_fd = -1, .chan = JOB_NONE};
    j->poll_out = j->poll_err = -1;
}

void jobs_init(struct jobs *js, struct link *link, int userns_fd, int proc_fd, const int report_pipe[2], uint32_t *begun)
{
    js->setup.begun = begun;
    js->link = link;
    js->setup.userns_fd = userns_fd;
    js->setup.report_fd = report_pipe[1];
    js->report_read_fd = report_pipe[0];
    js->proc_fd = proc_fd;
    js->probe_read_fd = -1;
    for (int i = 0; i < JOBS_MAX; i++)
        js->slot_of[i] = JOB_NONE;
    for (int i = 0; i < SPARES_MAX; i++)
        js->given[i].slot = -1;
}

int job_take_slot(struct jobs *js)
{
    for (int i = 0; i < JOBS_MAX; i++)
        if (js->job[i].phase == PHASE_FREE) {
            job_reset(&js->job[i]);
            if (i >= js->highest)
                js->highest = i + 1;
            return i;
        }
    return -1;
}

bool job_has_begun(const struct jobs *js, const struct job *j)
{
    return js->setup.begun[j - js->job] == j->generation;
}

void job_close(struct job *j)
{
    own_close(&j->request_fd);
    own_close(&j->in_fd);
    own_close(&j->out_fd);
    own_close(&j->err_fd);
}

void job_free(struct jobs *js, struct job *j)
{
    if (j->chan != JOB_NONE)
        js->slot_of[j->chan] = JOB_NONE;
    spare_forget(js, (int)(j - js->job));
    job_close(j);
    j->phase = PHASE_FREE;
    while (js->highest > 0 && js->job[js->highest - 1].phase == PHASE_FREE)
        js->highest--;
}

static void send_exit(struct jobs *js, struct job *j)
{
    uint8_t mem[128];
    struct record_writer w;
    record_start(&w, mem, sizeof(mem));
    msg_exit_write(&j->exit, &w);
    link_send(js->link, FROM_EXIT, j->chan, mem, w.len);
    j->exit_sent = true;
    j->phase = PHASE_LINGERING;
    j->discard = true;
    own_close(&j->in_fd);
    js->running--;
    spare_after_end(js);
}

/* A request that cannot even start answers at once, in a slot of no process. */
static void refuse(struct jobs *js, uint16_t chan, enum exec_stage stage, int os)
{
    uint8_t mem[128];
    struct record_writer w;
    struct msg_exit x = {.flags = EXIT_NOT_STARTED | EXIT_GONE, .value = (uint64_t)os, .stage = stage};
    record_start(&w, mem, sizeof(mem));
    msg_exit_write(&x, &w);
    link_send(js->link, FROM_EXIT, chan, mem, w.len);
}

/* Pipes for the three streams. Ours do not block; the command's do, as programs expect. */
bool job_make_pipes(struct job *j, struct runner_stdio *ret)
{
    int in[2], out[2], err[2];
    if (pipe2(in, O_CLOEXEC) < 0)
        return false;
    if (pipe2(out, O_CLOEXEC) < 0) {
        close(in[0]), close(in[1]);
        return false;
    }
    if (pipe2(err, O_CLOEXEC) < 0) {
        close(in[0]), close(in[1]), close(out[0]), close(out[1]);
        return false;
    }
    fcntl(in[1], F_SETFL, O_NONBLOCK);
    fcntl(out[0], F_SETFL, O_NONBLOCK);
    fcntl(err[0], F_SETFL, O_NONBLOCK);
    j->in_fd = in[1];
    j->out_fd = out[0];
    j->err_fd = err[0];
    *ret = (struct runner_stdio){.in = in[0], .out = out[1], .err = err[1], .terminal = -1};
    return true;
}

static void set_size(int fd, uint16_t rows, uint16_t cols)
{
    struct winsize w = {.ws_row = rows, .ws_col = cols};
    ioctl(fd, TIOCSWINSZ, &w);
}

/* A terminal of the box's own devpts; its slave is opened through the master, not by name. */
static bool make_terminal(struct job *j, const struct msg_exec *m, struct runner_stdio *ret)
{
    int unlock = 0;
    own_fd master = open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (master < 0 || ioctl(master, TIOCSPTLCK, &unlock) < 0)
        return false;
    int slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (slave < 0)
        return false;
    set_size(master, m->rows, m->cols);
    j->in_fd = fcntl(master, F_DUPFD_CLOEXEC, 5);
    j->out_fd = take_fd(&master);
    j->terminal = true;
    *ret = (struct runner_stdio){.in = -1, .out = -1, .err = -1, .terminal = slave};
    return true;
}

void job_adopt(struct jobs *js, int slot, uint16_t chan, const struct msg_exec *m)
{
    struct job *j = &js->job[slot];
    j->phase = PHASE_RUNNING;
    j->chan = chan;
    j->credit = STREAM_WINDOW;
    j->cpu_ms = m->cpu_ms;
    j->cpu_check_ms = m->cpu_ms ? clock_ms() + 10 : 0;
    js->slot_of[chan] = (uint16_t)slot;
    js->running++;
    if (!(m->flags & (EXEC_STDIN | EXEC_TTY)))
        own_close(&j->in_fd);
    j->tell_pid_us = clock_us() + TELL_PID_US;
}

void job_start(struct jobs *js, uint16_t chan, const struct msg_exec *m)
{
    int slot = job_take_slot(js);
    if (slot < 0) {
        refuse(js, chan, STAGE_FORK, EAGAIN);
        return;
    }
    struct job *j = &js->job[slot];
    struct runner_stdio io = {-1, -1, -1, -1}, shown;
    bool tty = m->flags & EXEC_TTY;
    if (!(tty ? make_terminal(j, m, &io) : job_make_pipes(j, &io))) {
        int os = errno;
        job_close(j);
        refuse(js, chan, tty ? STAGE_TERMINAL : STAGE_FORK, os);
        return;
    }
    shown = io;
    if (!(m->flags & EXEC_STDIN))
        shown.in = -1;
    if (m->flags & EXEC_SHARE)
        shown.err = shown.out;
    bool solo = js->setup.config.solo;
    pid_t pid = solo ? runner_start_bare(&js->setup, (uint32_t)slot, j->generation, m, &shown)
                     : runner_start(&js->setup, (uint32_t)slot, j->generation, m, &shown);
    int os = errno;
    runner_close_stdio(&io);
    *(solo ? &j->command : &j->runner) = pid;
    if (pid < 0) {
        job_close(j);
        refuse(js, chan, STAGE_FORK, os);
        return;
    }
    job_adopt(js, slot, chan, m);
    freezer_again(js);
}

static struct job *by_chan(struct jobs *js, uint16_t chan)
{
    return chan < JOBS_MAX && js->slot_of[chan] != JOB_NONE ? &js->job[js->slot_of[chan]] : NULL;
}

static bool exec_message(struct jobs *js, const struct frame *f)
{
    static struct msg_exec m;
    if (f->chan >= JOBS_MAX || by_chan(js, f->chan) || (js->setup.config.solo && js->served) || !msg_exec_parse_head(f->data, f->len, &m))
        return false;
    js->served = true;
    if (spare_use(js, f->chan, &m, f))
        return true; /* the spare parses the rest */
    if (js->setup.config.solo)
        spare_discard(js);
    if (!msg_exec_parse(f->data, f->len, &m))
        return false;
    job_start(js, f->chan, &m);
    return true;
}

static bool stdin_message(struct jobs *js, struct job *j, const struct frame *f)
{
    if (j->in_len + f->len > STDIN_WINDOW)
        return false; /* beyond the credit it was given */
    uint8_t *mem = js->input[j - js->job];
    if (j->in_start + j->in_len + f->len > STDIN_WINDOW) {
        memmove(mem, mem + j->in_start, j->in_len);
        j->in_start = 0;
    }
    if (j->in_fd >= 0) {
        memcpy(mem + j->in_start + j->in_len, f->data, f->len);
        j->in_len += f->len;
    }
    return true;
}

static bool config_message(struct jobs *js, const struct frame *f)
{
    struct msg_config c;
    if (js->setup.config.version || !msg_config_parse(f->data, f->len, &c) || c.version != WIRE_VERSION || c.seccomp >= SECCOMP_COUNT)
        return false;
    js->setup.config = c;
    js->keep_spare = c.spare;
    js->last_end_us = clock_us();     /* the box is fresh, not idle */
    js->spare_due_us = SPARE_NOT_DUE; /* the prober will be the first */
    return true;
}

bool jobs_message(struct jobs *js, const struct frame *f)
{
    uint64_t v = 0;
    if (f->type == TO_CONFIG)
        return config_message(js, f);
    if (!js->setup.config.version)
        return false;
    if (f->type == TO_EXEC)
        return exec_message(js, f);
    if (f->type == TO_PROBE)
        return spare_probe(js, f);
    if (f->type == TO_FREEZE || f->type == TO_THAW)
        return freezer_message(js, f);
    struct job *j = by_chan(js, f->chan);
    if (!j)
        return f->type > TO_EXEC && f->type <= TO_CLOSE; /* it has ended meanwhile */
    switch (f->type) {
    case TO_STDIN:
        return stdin_message(js, j, f);
    case TO_STDIN_END:
        j->in_end = true;
        return true;
    case TO_CREDIT:
        return msg_u64_parse(f->data, f->len, &v) && !__builtin_add_overflow(j->credit, v, &j->credit);
    case TO_SIGNAL:
        if (!msg_u64_parse(f->data, f->len, &v) || v < 1 || v > 64)
            return false;
        reaper_signal(j, (int)v);
        return true;
    case TO_KILL:
        reaper_start(j);
        return true;
    case TO_RESIZE:
        if (!msg_u64_parse(f->data, f->len, &v) || v > UINT32_MAX)
            return false;
        if (j->terminal && j->out_fd >= 0)
            set_size(j->out_fd, (uint16_t)(v >> 16), (uint16_t)v);
        return true;
    case TO_CLOSE:
        j->discard = true;
        return true;
    default:
        return false;
    }
}

/* Throws away what stands in the pipe, so that the writer goes on. */
static void discard_stream(int *fd)
{
    static uint8_t sink[65536];
    ssize_t n = read(*fd, sink, sizeof(sink));
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        own_close(fd);
}

/* Is the error of the last read or write one that goes by? A pipe has none of its own, so there every one does, within reason. */
static bool is_passing(struct job *j)
{
    if (errno == EINTR || (errno == EAGAIN && !j->exited))
        return true;
    return !j->terminal && errno != EPIPE && ++j->misses < MISSES_MAX;
}

/* Moves output of one stream into the link, within credit and room. */
static void pump_stream(struct jobs *js, struct job *j, int *fd, bool is_err)
{
    if (*fd < 0)
        return;
    if (j->discard) {
        discard_stream(fd);
        return;
    }
    size_t most = link_data_room(js->link);
    if (most > j->credit)
        most = (size_t)j->credit;
    uint32_t *left = &j->drain[is_err];
    if (j->exited && !j->terminal && most > *left)
        most = *left;
    if (most == 0)
        return;
    ssize_t n = read(*fd, link_data_at(js->link), most);
    if (n > 0) {
        link_data_done(js->link, is_err ? FROM_STDERR : FROM_STDOUT, j->chan, (size_t)n);
        j->credit -= (uint64_t)n;
        if (j->exited && !j->terminal)
            *left -= (uint32_t)n;
        j->misses = 0;
    } else if (n < 0 && is_passing(j)) {
        return; /* it comes round again */
    } else if (n < 0 && errno == EAGAIN) {
        *left = 0;
        if (j->terminal)
            own_close(fd);
    } else {
        own_close(fd);
    }
}

/* Only what has begun is fed: should the process be killed before, its request goes to another, and its input with it. */
static void feed_input(struct jobs *js, struct job *j)
{
    if (j->in_fd < 0 || !job_has_begun(js, j))
        return;
    if (j->in_len > 0) {
        ssize_t n = write(j->in_fd, js->input[j - js->job] + j->in_start, j->in_len);
        if (n > 0) {
            j->in_start += (uint32_t)n;
            j->in_len -= (uint32_t)n;
            link_send_u64(js->link, FROM_STDIN_CREDIT, j->chan, (uint64_t)n);
            j->misses = 0;
        } else if (n < 0 && errno != EAGAIN && !is_passing(j)) {
            own_close(&j->in_fd); /* the reader is gone: what comes now is lost, as in any pipe */
            j->in_len = 0;
        }
    }
    if (j->in_len == 0 && j->in_end && j->in_fd >= 0) {
        static const char end = 4; /* ^D: the end of input on a terminal */
        if (j->terminal && write(j->in_fd, &end, 1) < 0 && errno == EAGAIN)
            return;
        own_close(&j->in_fd);
    }
}

static bool is_drained(const struct job *j)
{
    if (j->terminal)
        return j->out_fd < 0 || j->discard;
    return j->discard || ((j->out_fd < 0 || j->drain[0] == 0) && (j->err_fd < 0 || j->drain[1] == 0));
}

static void settle(struct jobs *js, struct job *j)
{
    /* The end of a command that is killed is told when all it started has been found and killed. */
    bool hunted = j->killing && j->kill_rounds >= 0;
    if (j->phase == PHASE_RUNNING && j->exited && !hunted && !j->exit_sent && is_drained(j)) {
        if (j->runner == 0)
            j->exit.flags |= EXIT_GONE;
        send_exit(js, j);
    }
    if (j->phase == PHASE_LINGERING && j->runner == 0) {
        if (!(j->exit.flags & EXIT_GONE))
            link_send(js->link, FROM_GONE, j->chan, NULL, 0);
        job_free(js, j);
    }
}

/* Adds a descriptor; returns its place, or -1 for none. */
static int16_t want(struct pollfd *fds, int *n, int fd, short events)
{
    if (fd < 0)
        return -1;
    fds[*n] = (struct pollfd){.fd = fd, .events = events};
    return (int16_t)(*n)++;
}

static_assert(JOBS_POLL_MAX <= INT16_MAX, "places in the list of descriptors fit their type");

int jobs_poll(struct jobs *js, struct pollfd *fds)
{
    int n = 0;
    bool room = link_data_room(js->link) > 0;
    for (int i = 0; i < js->highest; i++) {
        struct job *j = &js->job[i];
        j->poll_out = j->poll_err = -1;
        if (j->phase != PHASE_RUNNING && j->phase != PHASE_LINGERING)
            continue;
        if (j->discard || (room && j->credit > 0)) {
            j->poll_out = want(fds, &n, j->out_fd, POLLIN);
            j->poll_err = want(fds, &n, j->err_fd, POLLIN);
        }
        if ((j->in_len > 0 || j->in_end) && job_has_begun(js, j))
            want(fds, &n, j->in_fd, POLLOUT);
    }
    return n;
}

static bool is_ready(const struct pollfd *fds, int16_t at)
{
    return at >= 0 && fds[at].revents != 0;
}

void jobs_polled(struct jobs *js, const struct pollfd *fds)
{
    for (int i = 0; i < js->highest; i++) {
        struct job *j = &js->job[i];
        if (j->phase != PHASE_RUNNING && j->phase != PHASE_LINGERING)
            continue;
        /* A command that has ended is drained without asking. */
        if (j->exited || is_ready(fds, j->poll_out))
            pump_stream(js, j, &j->out_fd, false);
        if (j->exited || is_ready(fds, j->poll_err))
            pump_stream(js, j, &j->err_fd, true);
        feed_input(js, j);
        settle(js, j);
    }
}

static uint32_t bytes_in(int fd)
{
    int n = 0;
    for (int tries = 0; fd >= 0 && tries < MISSES_MAX; tries++)
        if (ioctl(fd, FIONREAD, &n) == 0)
            return (uint32_t)n;
    return 0;
}

/* The command has ended: what stands in its pipes now is its output; what comes later is somebody else's. */
static void note_exit(struct job *j)
{
    j->exited = true;
    j->drain[0] = bytes_in(j->out_fd);
    j->drain[1] = bytes_in(j->err_fd);
}

void job_report(struct jobs *js, const struct report *r)
{
    if (r->slot >= JOBS_MAX || js->job[r->slot].phase == PHASE_FREE || js->job[r->slot].generation != r->generation)
        return;
    struct job *j = &js->job[r->slot];
    switch (r->kind) {
    case REPORT_PID:
        j->command = r->value;
        if (j->pending_signal)
            reaper_signal(j, j->pending_signal);
        j->pending_signal = 0;
        break;
    case REPORT_FAILED:
        j->exit = (struct msg_exit){.flags = EXIT_NOT_STARTED, .value = (uint64_t)r->value, .stage = r->stage};
        break;
    case REPORT_EXIT:
        if (j->phase == PHASE_SPARE)
            break; /* killed or sent away before it had a request: its slot is freed when its runner has ended */
        if (WIFSIGNALED(r->value) && spare_rescue(js, j))
            break;
        if (!(j->exit.flags & EXIT_NOT_STARTED))
            j->exit.value = (uint64_t)(uint32_t)r->value;
        if (r->cpu_us > j->exit.cpu_us)
            j->exit.cpu_us = r->cpu_us;
        j->exit.peak_kib = r->peak_kib;
        if (j->killing)
            j->exit.flags |= EXIT_KILLED;
        if (r->value != 0 && !(j->exit.flags & EXIT_NOT_STARTED))
            j->exit.flags |= room_missing();
        if (r->last)
            j->runner = 0; /* it has nothing left to wait for and ends by itself */
        note_exit(j);
        break;
    default:
        break;
    }
}

void jobs_reports(struct jobs *js)
{
    struct report r[64];
    ssize_t n;
    do {
        n = read(js->report_read_fd, r, sizeof(r));
        for (ssize_t i = 0; i < n / (ssize_t)sizeof(r[0]); i++)
            job_report(js, &r[i]);
    } while (n == sizeof(r));
}

/* A command with input that has not begun is looked at again soon. */
static int64_t await_begin(const struct jobs *js, int64_t wait)
{
    for (int i = 0; i < js->highest; i++) {
        const struct job *j = &js->job[i];
        if (j->phase == PHASE_RUNNING && !j->exited && (j->in_len > 0 || j->in_end) && j->in_fd >= 0 && !job_has_begun(js, j))
            return wait < 0 || wait > AWAIT_BEGIN_US ? AWAIT_BEGIN_US : wait;
    }
    return wait;
}

/* Tells the pids of commands that have been running for a while. */
static int64_t tell_pids(struct jobs *js, int64_t wait, int64_t now)
{
    for (int i = 0; i < js->highest; i++) {
        struct job *j = &js->job[i];
        if (j->phase != PHASE_RUNNING || j->tell_pid_us == 0 || j->exited)
            continue;
        if (now >= j->tell_pid_us && j->command > 0) {
            link_send_u64(js->link, FROM_STARTED, j->chan, (uint64_t)j->command);
            j->tell_pid_us = 0;
        } else if (wait < 0 || wait > TELL_PID_US) {
            wait = TELL_PID_US;
        }
    }
    return wait;
}

int64_t jobs_tick(struct jobs *js)
{
    int64_t now = clock_us();
    int64_t wait = await_begin(js, tell_pids(js, reaper_tick(js), now));
    int64_t left = js->hold == HOLD_NOT ? spare_tend(js, now) : freezer_tick(js);
    return left >= 0 && (wait < 0 || left < wait) ? left : wait;
}
