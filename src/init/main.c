/* SPDX-License-Identifier: Apache-2.0 */
/* pale-init: pid 1 of a box. Runs commands, terminals and file requests for the keeper at the other end of descriptor 3.
 *
 * How it works: it starts inside the finished wall with two descriptors (3: the wire, 4: the inner user namespace), no
 * environment and, after its first steps, no capability. All its memory is static. Whatever goes wrong with the wire ends it,
 * and the kernel ends the box with it. It is not trusted by the host; it has nothing the box does not have, except that it owns
 * the inner user namespace and so can start and end the processes in it. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/fd.h"
#include "confine/caps.h"
#include "confine/seccomp.h"
#include "confine/slice.h"
#include "confine/weaken.h"
#include "init/job.h"
#include "init/spare.h"

#define WIRE_FD 3
#define USERNS_FD 4
/* Polled before those of jobs: the wire, signals, reports of runners, the prober. */
#define FIRST_JOB_FD 4

struct init {
    struct link link;
    struct jobs jobs;
    int signal_fd;
    struct pollfd fds[FIRST_JOB_FD + JOBS_POLL_MAX];
};

static struct init state;

/* Needs: nothing. Gives up: being looked into by the box, being signalled by it. */
static bool hide(uint64_t weak)
{
    sigset_t all;
    sigfillset(&all);
    signal(SIGPIPE, SIG_IGN);
    return sigprocmask(SIG_SETMASK, &all, NULL) == 0 && prctl(PR_SET_DUMPABLE, is_weak(weak, WEAKEN_DUMPABLE), 0, 0, 0) == 0;
}

/* Needs: pid 1 of the box. Gives up: nothing. */
static bool open_state(struct init *s)
{
    int report[2];
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    s->signal_fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s->signal_fd < 0 || proc < 0 || pipe2(report, O_CLOEXEC) < 0 || !fd_set_nonblock(report[0], true))
        return false;
    if (fcntl(WIRE_FD, F_SETFD, FD_CLOEXEC) < 0 || fcntl(USERNS_FD, F_SETFD, FD_CLOEXEC) < 0)
        return false;
    /* Children see it until their program runs, which gets memory of its own. */
    uint32_t *begun = mmap(NULL, JOBS_MAX * sizeof(*begun), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (begun == MAP_FAILED)
        return false;
    s->link.fd = WIRE_FD;
    jobs_init(&s->jobs, &s->link, USERNS_FD, proc, report, begun);
    return true;
}

/* Needs: the descriptors are open, the bounding set empty. Gives up: every capability in the outer user namespace. */
static bool drop(uint64_t weak)
{
    struct pale_err e;
    return (keeps_caps(weak) || caps_drop_all(&e) == 0) && (is_weak(weak, WEAKEN_NNP) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
}

/* Needs: no new privileges. Gives up: every system call that neither init nor any command needs, for the whole box. Comes after
 * the first message, which in a test build may say not to. */
static bool lock(const struct init *s)
{
    struct pale_err e;
    if (is_weak(s->jobs.setup.config.weaken, WEAKEN_DUMPABLE))
        prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    if (is_weak(s->jobs.setup.config.weaken, WEAKEN_SECCOMP))
        return true;
    return seccomp_load(seccomp_for_program(OWN_INIT), &e) == 0 && prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 2;
}

static bool take_messages(struct init *s)
{
    struct frame f;
    int got;
    while ((got = link_next(&s->link, &f)) == 1)
        if (!jobs_message(&s->jobs, &f) || (f.type == TO_CONFIG && !lock(s)))
            return false;
    return got == 0;
}

static void drain_signals(int fd)
{
    struct signalfd_siginfo info;
    while (read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
        ;
}

/* One turn: wait, take what came, move bytes. False ends the box. */
static bool turn(struct init *s)
{
    int64_t wait = jobs_tick(&s->jobs);
    struct timespec most = {.tv_sec = wait / 1000000, .tv_nsec = wait % 1000000 * 1000};
    if (!link_flush(&s->link))
        return false;
    s->fds[0] = (struct pollfd){.fd = WIRE_FD, .events = (short)(POLLIN | (s->link.out_len > 0 ? POLLOUT : 0))};
    s->fds[1] = (struct pollfd){.fd = s->signal_fd, .events = POLLIN};
    s->fds[2] = (struct pollfd){.fd = s->jobs.report_read_fd, .events = POLLIN};
    s->fds[3] = (struct pollfd){.fd = s->jobs.probe_read_fd, .events = POLLIN};
    int n = jobs_poll(&s->jobs, s->fds + FIRST_JOB_FD);
    if (ppoll(s->fds, (nfds_t)(FIRST_JOB_FD + n), wait < 0 ? NULL : &most, NULL) < 0 && errno != EINTR)
        return false;
    if ((s->fds[0].revents & (POLLIN | POLLHUP | POLLERR)) && (!link_fill(&s->link) || !take_messages(s)))
        return false;
    if (s->fds[2].revents)
        jobs_reports(&s->jobs);
    if (s->fds[1].revents) {
        drain_signals(s->signal_fd);
        jobs_children(&s->jobs);
    }
    if (s->fds[3].revents && s->jobs.probe_read_fd == s->fds[3].fd)
        spare_probed(&s->jobs);
    jobs_polled(&s->jobs, s->fds + FIRST_JOB_FD);
    return link_flush(&s->link);
}

int main(void)
{
    uint64_t weak = weaken_from_env(); /* 0 in a release */
    if (!hide(weak) || !open_state(&state) || !drop(weak))
        return 125;
    slice_shorten();
    link_send_u64(&state.link, FROM_HELLO, 0, WIRE_VERSION);
    while (turn(&state))
        ;
    while (is_weak(weak, WEAKEN_DEATH))
        pause();
    return 0;
}
