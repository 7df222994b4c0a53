/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the ending of commands.
 *
 * How it works: everything a command starts stays below its runner, which is a subreaper, so a round of killing reads the
 * process tree and kills what descends from the runner. A process with SIGKILL pending cannot fork, so each round can miss only
 * what was born during it; rounds go on until one finds nothing. A bomb of which a hundred rounds each found something new meets
 * kill(-1), which the kernel carries out without letting anything be born meanwhile: other commands of the box die with it, but
 * nothing survives. A process that was killed and takes its time to die is not new.
 * Where the box has a single user id a command can kill its own runner; its descendants then become children of init, where no
 * honest process ever is, and are hunted down as fugitives. */
#include "init/reaper.h"

#include <errno.h>
#include <signal.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "confine/weaken.h"
#include "init/spare.h"
#include "init/tree.h"

#define ROUNDS_MAX 100
#define ROUND_MS 2
#define ROUNDS_LEAST_MS 500
/* One reading of /proc can miss a chain of processes that each fork and end; their runner, which reaps them, is stopped for the
 * time of a reading, and so many readings in a row must find nothing. */
#define QUIET_ROUNDS 3

static struct tree tree;

/* Whom the last round of killing found, in the order of their numbers, and for which job. */
static pid_t known[TREE_MAX];
static int known_count;
static const struct job *known_job;

void reaper_signal(struct job *j, int sig)
{
    if (j->exited)
        return;
    if (j->command <= 0) {
        j->pending_signal = sig; /* for a command that is not born yet */
        return;
    }
    j->signalled = true;
    /* Before it has a session of its own it is alone; it blocks signals until its program starts. */
    if (kill(-j->command, sig) < 0 && errno == ESRCH)
        kill(j->command, sig);
}

void reaper_wake(const struct job *j)
{
    if (j->runner > 0)
        kill(j->runner, SIGCONT);
    if (j->command > 0)
        kill(j->command, SIGCONT);
}

void reaper_start(struct job *j)
{
    if (!j->killing) {
        j->killing = true;
        j->kill_rounds = 0;
        j->next_round_ms = 0;
    }
}

/* Remembers whom this round has found; is anybody among them whom the last did not find? */
static bool finds_new(const struct job *j)
{
    bool found = known_job != j;
    int old = 0, n = 0;
    static pid_t now[TREE_MAX];
    for (int i = 0; i < tree.count; i++) {
        if (tree.process[i].kin != KIN_YES)
            continue;
        pid_t pid = tree.process[i].pid;
        while (old < known_count && known[old] < pid)
            old++;
        found = found || old == known_count || known[old] != pid;
        now[n++] = pid;
    }
    memcpy(known, now, (size_t)n * sizeof(now[0]));
    known_count = n;
    known_job = j;
    return found;
}

static void kill_marked(void)
{
    for (int i = 0; i < tree.count; i++)
        if (tree.process[i].kin == KIN_YES)
            kill(tree.process[i].pid, SIGKILL);
}

/* What a command is about to be killed with has not been waited for, so it is in nobody's rusage: count it while it is there. */
static void note_cpu(struct job *j, pid_t root)
{
    uint64_t us = tree_cpu_ms(&tree, root) * 1000;
    if (us > j->exit.cpu_us)
        j->exit.cpu_us = us;
}

/* Everything in the box. A twin without a pid namespace of its own must not mean everything on the host. */
static void kill_all(const struct jobs *js)
{
    if (!is_weak(js->setup.config.weaken, WEAKEN_PIDNS))
        kill(-1, SIGKILL);
}

/* One round for one job; true when nothing of it is left. */
static bool kill_round(struct jobs *js, struct job *j)
{
    if (is_weak(js->setup.config.weaken, WEAKEN_TREE_KILL)) {
        if (j->command > 0)
            kill(j->command, SIGKILL);
        return true;
    }
    if (js->setup.config.solo) {
        if (tree_read(&tree, js->proc_fd) && tree_mark(&tree, getpid()) > 0)
            note_cpu(j, getpid());
        kill_all(js); /* all there is, is its own */
        return true;
    }
    if (j->runner <= 0)
        return true;
    /* A stopped runner leaves the dead where a reading finds them. */
    kill(j->runner, SIGSTOP);
    bool read = j->kill_rounds <= ROUNDS_MAX && tree_read(&tree, js->proc_fd) && !tree.overflow;
    kill(j->runner, SIGCONT);
    if (!read) {
        kill_all(js);
        return true;
    }
    if (tree_mark(&tree, j->runner) == 0)
        return ++j->quiet_rounds >= QUIET_ROUNDS && j->command > 0; /* a runner that has not forked yet will, once */
    j->quiet_rounds = 0;
    j->kill_rounds += finds_new(j);
    j->next_round_ms = clock_ms() + ROUND_MS;
    note_cpu(j, j->runner);
    kill_marked();
    return false;
}

static bool is_runner(const struct jobs *js, pid_t pid)
{
    for (int i = 0; i < js->highest; i++)
        if (js->job[i].phase != PHASE_FREE && js->job[i].runner == pid)
            return true;
    return false;
}

/* Children of init that are no runners have lost theirs. */
static bool sweep_round(struct jobs *js)
{
    int found = 0;
    if (++js->sweep_rounds > ROUNDS_MAX || !tree_read(&tree, js->proc_fd) || tree.overflow) {
        kill_all(js);
        return true;
    }
    pid_t own = getpid();
    for (int i = 0; i < tree.count; i++)
        if (tree.process[i].parent == own && !is_runner(js, tree.process[i].pid)) {
            pid_t root = tree.process[i].pid;
            found++;
            kill(root, SIGKILL);
            if (tree_mark(&tree, root) > 0)
                kill_marked();
        }
    return found == 0;
}

/* Compares a command's CPU time with its limit; sets when to look again. */
static void check_cpu(struct jobs *js, struct job *j, int64_t now)
{
    if (!tree_read(&tree, js->proc_fd) || tree.overflow) {
        /* Not to be counted is not to be below the limit. */
        if (++j->cpu_misses > ROUNDS_MAX)
            reaper_start(j);
        j->cpu_check_ms = j->killing ? 0 : now + 10;
        return;
    }
    j->cpu_misses = 0;
    pid_t root = js->setup.config.solo ? getpid() : j->runner;
    tree_mark(&tree, root);
    uint64_t used = tree_cpu_ms(&tree, root);
    if (used >= j->cpu_ms) {
        j->exit.flags |= EXIT_CPU_LIMIT;
        j->cpu_check_ms = 0;
        reaper_start(j);
        return;
    }
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t next = (j->cpu_ms - used) / (uint64_t)(cpus > 0 ? cpus : 1);
    j->cpu_check_ms = now + (next < 10 ? 10 : next > 1000 ? 1000 : (int64_t)next);
}

static void sooner(int64_t *wait, int64_t ms)
{
    int64_t us = ms < 0 ? 0 : ms * 1000;
    if (*wait < 0 || us < *wait)
        *wait = us;
}

int64_t reaper_tick(struct jobs *js)
{
    int64_t wait = -1;
    int64_t now = 0;
    for (int i = 0; i < js->highest; i++) {
        struct job *j = &js->job[i];
        if (j->phase == PHASE_FREE || j->phase == PHASE_SPARE)
            continue;
        /* What a command leaves running is held to its limit too. */
        if (j->cpu_check_ms && (!j->exited || j->runner > 0)) {
            now = now ? now : clock_ms();
            if (now >= j->cpu_check_ms)
                check_cpu(js, j, now);
            if (j->cpu_check_ms)
                sooner(&wait, j->cpu_check_ms - now);
        }
        if (j->killing && j->kill_rounds >= 0) {
            /* The runner's stopping and going on wakes us, and is no reason for another round. */
            now = now ? now : clock_ms();
            if (now < j->next_round_ms) {
                sooner(&wait, j->next_round_ms - now);
            } else if (kill_round(js, j)) {
                j->kill_rounds = -1;
                sooner(&wait, 0); /* its end may now be told */
            } else {
                sooner(&wait, ROUND_MS);
            }
        }
    }
    if (js->sweeping) {
        if (sweep_round(js))
            js->sweeping = false;
        else
            sooner(&wait, ROUND_MS);
    }
    return wait;
}

/* A runner that did not end by itself was killed, and has left its command's descendants to init. */
static void runner_ended(struct jobs *js, struct job *j, int status)
{
    j->runner = 0;
    if (j->phase == PHASE_SPARE) {
        job_free(js, j);
        js->spare_due_us = clock_us() + 50000; /* not at once: whoever killed it may do so again */
        return;
    }
    /* Its command may live on, and must not begin while another is given the request. */
    if (!j->exited && j->command > 0)
        kill(j->command, SIGKILL);
    if (!j->exited && spare_rescue(js, j)) {
        job_free(js, j);
    } else if (!j->exited) {
        j->exited = true;
        j->exit.value = SIGKILL;
        j->exit.flags |= EXIT_KILLED;
        j->drain[0] = j->drain[1] = 0;
    }
    if (!WIFEXITED(status)) {
        js->sweeping = true;
        js->sweep_rounds = 0;
    }
}

/* The end of a command that has no runner: init reaps it, and all it leaves behind, itself. */
static void bare_ended(struct jobs *js, pid_t pid, int status)
{
    for (int i = 0; i < js->highest; i++) {
        struct job *j = &js->job[i];
        if (j->phase != PHASE_RUNNING || j->command != pid)
            continue;
        struct rusage u = {0};
        getrusage(RUSAGE_CHILDREN, &u);
        struct report r = {.slot = (uint32_t)i, .generation = j->generation, .kind = REPORT_EXIT, .value = status};
        r.cpu_us = (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000 + (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
        r.peak_kib = (uint64_t)u.ru_maxrss;
        job_report(js, &r);
    }
}

void jobs_children(struct jobs *js)
{
    pid_t pid;
    int status = 0;
    jobs_reports(js);
    int errors = 0;
    /* A child that is not taken now would not announce itself again. */
    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0 || (pid < 0 && errno != ECHILD && ++errors < ROUNDS_MAX)) {
        struct job *j = NULL;
        if (pid < 0)
            continue;
        if (WIFSTOPPED(status)) {
            /* Where the box has one id a command can stop runners, but not for long. A bare command is its own master. */
            if (!js->setup.config.solo)
                kill(pid, SIGCONT);
            continue;
        }
        if (js->setup.config.solo) {
            bare_ended(js, pid, status);
            continue;
        }
        for (int i = 0; i < js->highest && !j; i++)
            if (js->job[i].phase != PHASE_FREE && js->job[i].runner == pid)
                j = &js->job[i];
        if (j) {
            /* Its last report was in the pipe before it ended. */
            jobs_reports(js);
            runner_ended(js, j, status);
        }
        /* Anybody else: a runner that said it was done, or a fugitive, which runner_ended knows of. */
    }
}
