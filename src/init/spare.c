/* SPDX-License-Identifier: Apache-2.0 */
/* Owns spares: when one is made, taken, sent away; and the prober, which is a spare that tries the wall first. */
#include "init/spare.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/own.h"
#include "init/reaper.h"

/* A new spare is made a moment after a command's end, when keeper and client have had the processor for the result, or when the
 * command that took the last one goes on for long. */
#define SPARE_AFTER_END_US 150
#define SPARE_AFTER_USE_US 5000
/* A command that comes so soon after the end of another would find the next spare half made: for a while a box then keeps two. Not
 * where processes are few, for spares count. */
#define BUSY_GAP_US 2000
#define BUSY_US 1000000
#define TWO_SPARES_FROM 64
/* A box that nothing has run in for so long keeps no spare: of a thousand boxes on a host most wait for their agent to think, and two
 * processes more are a third of what such a box takes. The next command starts a little later. */
#define IDLE_US 3000000

void spare_forget(struct jobs *js, int slot)
{
    int kept = 0;
    for (int i = 0; i < js->spares; i++)
        if (js->spare[i] != slot)
            js->spare[kept++] = js->spare[i];
    js->spares = kept;
}

void spare_after_end(struct jobs *js)
{
    js->last_end_us = clock_us();
    js->spare_due_us = js->last_end_us + SPARE_AFTER_END_US;
}

/* A spare whose request pipe is closed ends by itself. */
static void send_away(struct jobs *js, int slot)
{
    spare_forget(js, slot);
    own_close(&js->job[slot].request_fd);
}

/* A place among the given whose request has begun, or is over. */
static bool is_free(const struct jobs *js, int i)
{
    int slot = js->given[i].slot;
    return slot < 0 || js->job[slot].generation != js->given[i].generation || js->job[slot].phase == PHASE_FREE ||
           job_has_begun(js, &js->job[slot]);
}

/* Remembers what the spare in this slot was given, where there is room. */
static void remember(struct jobs *js, int slot, const struct frame *f)
{
    for (int i = 0; i < SPARES_MAX; i++) {
        if (!is_free(js, i))
            continue;
        js->given[i].slot = slot;
        js->given[i].generation = js->job[slot].generation;
        js->given[i].len = f->len;
        memcpy(js->given[i].bytes, f->data, f->len);
        return;
    }
}

bool spare_use(struct jobs *js, uint16_t chan, const struct msg_exec *m, const struct frame *f)
{
    int64_t now = clock_us();
    if (now - js->last_end_us < BUSY_GAP_US)
        js->busy_until_us = now + BUSY_US;
    if (js->spares == 0 || !runner_spare_fits(m, f->len))
        return false;
    int slot = js->spare[0];
    struct job *j = &js->job[slot];
    uint32_t n = f->len;
    const struct iovec part[2] = {{.iov_base = &n, .iov_len = sizeof(n)}, {.iov_base = (void *)f->data, .iov_len = n}};
    reaper_wake(j); /* not afterwards: a command may be so quick to stop itself, and means it */
    bool whole = writev(j->request_fd, part, 2) == (ssize_t)(sizeof(n) + n);
    spare_forget(js, slot);
    js->spare_due_us = now + SPARE_AFTER_USE_US;
    if (!whole) {
        /* The spare is no more, or its pipe is too short (a user with many pipes gets small ones). Without the rest it ends. */
        own_close(&j->request_fd);
        return false;
    }
    remember(js, slot, f);
    job_adopt(js, slot, chan, m);
    return true;
}

/* Gives the request to another process, with what came in for it meanwhile. */
static void start_again(struct jobs *js, struct job *j, const struct msg_exec *m)
{
    uint16_t chan = j->chan;
    js->slot_of[chan] = JOB_NONE;
    js->running--;
    j->chan = JOB_NONE;
    j->phase = PHASE_SPARE;
    job_start(js, chan, m);
    if (js->slot_of[chan] == JOB_NONE)
        return; /* which was answered */
    int slot = js->slot_of[chan];
    struct job *other = &js->job[slot];
    memcpy(js->input[slot], js->input[j - js->job] + j->in_start, j->in_len);
    other->in_len = j->in_len;
    other->in_end = j->in_end;
    other->credit = j->credit;
    other->discard = j->discard;
    other->pending_signal = j->pending_signal;
}

bool spare_rescue(struct jobs *js, struct job *j)
{
    static struct msg_exec m;
    int slot = (int)(j - js->job);
    if (j->killing || j->signalled || j->chan == JOB_NONE || job_has_begun(js, j))
        return false;
    for (int i = 0; i < SPARES_MAX; i++)
        if (js->given[i].slot == slot && js->given[i].generation == j->generation) {
            js->given[i].slot = -1;
            if (!msg_exec_parse(js->given[i].bytes, js->given[i].len, &m))
                return false;
            start_again(js, j, &m);
            return true;
        }
    return false;
}

/* probe: what it tries first and where it reports; NULL for none. */
static bool make_spare(struct jobs *js, const struct runner_probe *probe)
{
    int slot = job_take_slot(js);
    int request[2];
    struct runner_stdio io = {-1, -1, -1, -1};
    js->spare_due_us = SPARE_NOT_DUE;
    if (slot < 0)
        return false;
    struct job *j = &js->job[slot];
    if (pipe2(request, O_CLOEXEC) < 0)
        return false;
    j->request_fd = request[1];
    fcntl(request[1], F_SETFL, O_NONBLOCK);
    pid_t pid = -1;
    if (job_make_pipes(j, &io))
        pid = runner_start_spare(&js->setup, (uint32_t)slot, j->generation, request[0], probe, &io);
    close(request[0]);
    runner_close_stdio(&io);
    if (pid <= 0) {
        job_close(j);
        return false;
    }
    *(js->setup.config.solo ? &j->command : &j->runner) = pid;
    j->phase = PHASE_SPARE;
    js->spare[js->spares++] = (uint16_t)slot;
    return true;
}

int64_t spare_tend(struct jobs *js, int64_t now)
{
    uint64_t processes = js->setup.config.processes;
    bool busy = now < js->busy_until_us && (processes == 0 || processes >= TWO_SPARES_FROM);
    bool idle = js->running == 0 && now - js->last_end_us >= IDLE_US;
    int want = !js->keep_spare || idle ? 0 : busy ? 2 : 1;
    if (js->setup.config.solo)
        return -1; /* the prober is its only spare */
    while (js->spares > want)
        send_away(js, js->spare[js->spares - 1]);
    if (js->spares < want && js->spare_due_us != SPARE_NOT_DUE && now >= js->spare_due_us) {
        /* One that could not be made is tried for after the next command's end, not again and again. */
        if (make_spare(js, NULL) && js->spares < want)
            js->spare_due_us = now + SPARE_AFTER_USE_US;
    }
    if (js->spares < want && js->spare_due_us != SPARE_NOT_DUE)
        return js->spare_due_us > now ? js->spare_due_us - now : 0;
    if (js->spares > 1)
        return js->busy_until_us - now;
    return js->spares == 1 && js->running == 0 ? js->last_end_us + IDLE_US - now : -1;
}

void spare_discard(struct jobs *js)
{
    while (js->spares > 0) {
        struct job *j = &js->job[js->spare[0]];
        kill(j->command, SIGKILL);
        while (waitpid(j->command, NULL, 0) < 0 && errno == EINTR)
            ;
        job_free(js, j);
    }
}

/* A prober that has not reported gives way to the next; what it was asked is answered with nothing. */
static void give_up_probe(struct jobs *js)
{
    struct job *j = &js->job[js->probe_slot];
    if (j->phase == PHASE_SPARE && j->generation == js->probe_generation) {
        if (j->command > 0)
            kill(j->command, SIGKILL);
        send_away(js, js->probe_slot);
    }
    own_close(&js->probe_read_fd);
    link_send(js->link, FROM_PROBE, 0, NULL, 0);
}

bool spare_probe(struct jobs *js, const struct frame *f)
{
    struct msg_probe m;
    int report[2];
    if ((js->setup.config.solo && js->highest > 0) || !msg_probe_parse(f->data, f->len, &m))
        return false;
    if (js->probe_read_fd >= 0)
        give_up_probe(js);
    if (pipe2(report, O_CLOEXEC) < 0) {
        link_send(js->link, FROM_PROBE, 0, NULL, 0);
        return true;
    }
    const struct runner_probe probe = {.ask = &m, .report_fd = report[1]};
    /* One that waits already has been there for longer; the prober takes its place. */
    if (js->spares == SPARES_MAX)
        send_away(js, js->spare[js->spares - 1]);
    bool made = make_spare(js, &probe);
    close(report[1]);
    js->probe_read_fd = report[0];
    if (!made) {
        spare_probed(js);
        return true;
    }
    js->probe_slot = js->spare[js->spares - 1];
    js->probe_generation = js->job[js->probe_slot].generation;
    return true;
}

void spare_probed(struct jobs *js)
{
    struct probe_report r;
    ssize_t n = fd_read_full(js->probe_read_fd, &r, sizeof(r));
    own_close(&js->probe_read_fd);
    link_send(js->link, FROM_PROBE, 0, &r, n == (ssize_t)sizeof(r) ? sizeof(r) : 0);
}
