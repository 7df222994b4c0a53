/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the stopping of a whole box by signals.
 *
 * How it works: kill(-1, SIGSTOP) reaches every process but init at once, and the kernel lets nothing be born meanwhile that would not
 * have the signal too. Then /proc is read until all stand still; who runs for long and has no SIGSTOP waiting was woken by somebody who
 * was not stopped yet, and gets another. Runners are our own and only wait: jobs_children sets them going again, so that the box's commands
 * can be killed while it is frozen.
 *
 * Who was stopped before (job control) must not go on with the rest. Nothing is remembered for that: a SIGSTOP that meets a stopped
 * process stays pending in it, while one that stops a process is used up. So at the thaw who is stopped with a SIGSTOP pending was
 * stopped before us, and stays as it is; the SIGCONT that it gets one day takes the pending signal away. That is why a second one comes
 * after a SIGCONT: should its receiver have stood still after all, it is used up and not left pending.
 *
 * Children go on before their parents: a parent that ends first would leave a stopped process group orphaned, to which the kernel sends
 * SIGHUP, and a shell that wakes would find its child stopped. */
#include "init/freezer.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "confine/weaken.h"
#include "init/reaper.h"
#include "init/tree.h"

#define ROUND_US 2000
/* A process can have the kernel wake it: a timer whose signal is SIGCONT. It is stopped again, but that often and no more: frozen boxes
 * are many, and each look costs. */
#define GUARD_US 1000000
/* One reading can miss who was born during it. */
#define QUIET_ROUNDS 2
/* A process that is about to stop looks for a moment as if it had never been told: one in so many rounds tells it again. */
#define AGAIN_ROUNDS 16

static struct tree tree;

/* What the kernel tells of a process. */
struct stance {
    bool there;
    bool still;   /* runs no step of its program */
    bool stopped; /* … because of a signal */
    bool stop_pending;
};

/* The name is the process's own choice, but has its newlines escaped here, so that no line is anybody else's. */
static struct stance stance_of(int proc_fd, pid_t pid)
{
    char path[32], text[8192];
    struct stance s = {.there = true};
    char *end = path + sizeof(path);
    *--end = 0;
    memcpy(end -= 7, "/status", 7);
    for (unsigned n = (unsigned)pid; n; n /= 10)
        *--end = (char)('0' + n % 10);
    own_fd fd = openat(proc_fd, end, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : fd_read_full(fd, text, sizeof(text) - 1);
    if (n < 0) {
        s.there = errno != ENOENT && errno != ESRCH;
        return s;
    }
    text[n] = 0;
    const char *state = strstr(text, "\nState:\t"), *pending = strstr(text, "\nShdPnd:\t");
    if (pending) {
        /* Sixteen hex digits, the lowest bit last; SIGSTOP is bit 18. */
        char digit = strnlen(pending, 25) == 25 ? pending[9 + 16 - 5] : '0';
        int v = digit >= 'a' ? digit - 'a' + 10 : digit - '0';
        s.stop_pending = v & (1 << ((SIGSTOP - 1) % 4));
    }
    char c = state ? state[8] : 0;
    s.stopped = c == 'T' || c == 't';
    /* Of a dead first thread the others may live; they are still when none has a signal to take. Who waits in the kernel where no signal
     * reaches, such as the parent of a vfork for its child, stops before it comes back to its program. */
    s.still = s.stopped || c == 'X' || (c == 'Z' && !s.stop_pending) || (c == 'D' && s.stop_pending);
    return s;
}

static bool is_ours(const struct jobs *js, pid_t pid)
{
    for (int i = 0; i < js->highest; i++)
        if (js->job[i].phase != PHASE_FREE && js->job[i].runner == pid)
            return true;
    return pid == getpid();
}

/* A runner that has not forked its command yet will. */
static bool is_unborn(const struct jobs *js)
{
    for (int i = 0; i < js->highest; i++)
        if (js->job[i].phase != PHASE_FREE && js->job[i].runner > 0 && js->job[i].command <= 0 && !js->job[i].exited)
            return true;
    return false;
}

/* Everything in the box. A twin without a pid namespace of its own must not mean everything on the host. */
static void signal_all(const struct jobs *js, int sig)
{
    if (!is_weak(js->setup.config.weaken, WEAKEN_PIDNS))
        kill(-1, sig);
}

static void freeze(struct jobs *js, uint64_t number)
{
    /* Who is frozen already and asked again must not be sent a second signal. */
    if (js->hold == HOLD_NOT)
        signal_all(js, SIGSTOP);
    js->hold = HOLD_SEEKING;
    js->hold_number = number;
    js->hold_quiet = js->hold_rounds = 0;
}

static void let_go(struct jobs *js, pid_t pid)
{
    struct stance s = stance_of(js->proc_fd, pid);
    if (s.there && !(s.stopped && s.stop_pending))
        kill(pid, SIGCONT);
}

static void thaw(struct jobs *js)
{
    if (js->hold == HOLD_NOT)
        return;
    js->hold = HOLD_NOT;
    /* Too many to be looked at one by one: those that were stopped before go on too. */
    if (!tree_read(&tree, js->proc_fd) || tree.overflow) {
        signal_all(js, SIGCONT);
        return;
    }
    for (int depth = tree_depths(&tree); depth >= 0; depth--)
        for (int i = 0; i < tree.count; i++)
            if (tree.process[i].depth == depth && !is_ours(js, tree.process[i].pid))
                let_go(js, tree.process[i].pid);
}

bool freezer_message(struct jobs *js, const struct frame *f)
{
    uint64_t number = 0;
    if (f->chan != 0 || js->setup.config.solo)
        return false;
    if (f->type == TO_FREEZE) {
        if (!msg_u64_parse(f->data, f->len, &number))
            return false;
        freeze(js, number);
        return true;
    }
    thaw(js);
    return f->len == 0;
}

void freezer_again(struct jobs *js)
{
    if (js->hold != HOLD_NOT) {
        js->hold = HOLD_SEEKING;
        js->hold_quiet = 0;
    }
}

/* True if all that was read stands still. */
static bool look(struct jobs *js)
{
    bool again = ++js->hold_rounds % AGAIN_ROUNDS == 0;
    bool quiet = !is_unborn(js) && tree_read(&tree, js->proc_fd);
    for (int i = 0; i < tree.count; i++) {
        pid_t pid = tree.process[i].pid;
        if (is_ours(js, pid))
            continue;
        struct stance s = stance_of(js->proc_fd, pid);
        if (!s.there || s.still)
            continue;
        quiet = false;
        if (again && !s.stop_pending) {
            kill(pid, SIGCONT);
            kill(pid, SIGSTOP);
        }
    }
    return quiet;
}

int64_t freezer_tick(struct jobs *js)
{
    if (js->hold == HOLD_NOT || is_weak(js->setup.config.weaken, WEAKEN_PIDNS))
        return -1;
    if (!look(js)) {
        js->hold_quiet = 0;
        return ROUND_US;
    }
    js->hold_rounds = 0;
    if (js->hold == HOLD_SEEKING && ++js->hold_quiet >= QUIET_ROUNDS) {
        js->hold = HOLD_DONE;
        link_send_u64(js->link, FROM_FROZEN, 0, js->hold_number);
    }
    return js->hold == HOLD_SEEKING ? ROUND_US : GUARD_US;
}
