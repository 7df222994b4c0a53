/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the running of attempts. */
#include "confine/attempt.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "confine/kernel.h"

/* Every attempt is a handful of system calls. */
#define ATTEMPT_TIMEOUT_MS 8000

void attempt_say(struct answer *ret, enum finding_state state, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    ret->state = state;
    vsnprintf(ret->detail, sizeof(ret->detail), fmt, ap);
    va_end(ap);
}

void attempt_os(struct answer *ret, enum finding_state state, const char *what)
{
    attempt_say(ret, state, "%s: %s", what, strerror(errno));
}

void attempt_err(struct answer *ret, enum finding_state state, const struct pale_err *e)
{
    attempt_say(ret, state, "%.230s", e->text);
}

/* In a user namespace the child becomes what the builder of a wall is there. */
static bool settle(const struct attempt *a, uint64_t flags)
{
    if (!(flags & CLONE_NEWUSER))
        return true;
    if (a->ids.kind == IDS_RANGE && (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0))
        return false;
    return prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0;
}

static void __attribute__((noreturn)) child_main(struct attempt *a, uint64_t flags, attempt_fn *fn, int go_fd, int answer_fd)
{
    char go;
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (fd_read_full(go_fd, &go, 1) != 1)
        _exit(1);
    attempt_say(&a->answer, FINDING_OK, "works");
    if (!settle(a, flags))
        attempt_os(&a->answer, FINDING_MISSING, "become root of a user namespace");
    else
        fn(a);
    _exit(fd_write_full(answer_fd, &a->answer, sizeof(a->answer)) ? 0 : 1);
}

static void await_answer(int fd, struct answer *ret)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    struct answer got;
    int n;
    while ((n = poll(&p, 1, ATTEMPT_TIMEOUT_MS)) < 0 && errno == EINTR)
        ;
    if (n <= 0)
        attempt_say(ret, FINDING_MISSING, "the attempt did not end within %d s", ATTEMPT_TIMEOUT_MS / 1000);
    else if (fd_read_full(fd, &got, sizeof(got)) != (ssize_t)sizeof(got) || (unsigned)got.state >= FINDING_COUNT)
        attempt_say(ret, FINDING_MISSING, "the attempt was killed");
    else
        *ret = got;
    ret->detail[sizeof(ret->detail) - 1] = 0;
}

/* Lets the child go on once its ids are written, and takes its answer. */
static void conduct(const struct attempt *a, uint64_t flags, pid_t pid, int go_fd, int answer_fd, struct answer *ret)
{
    struct pale_err e = {0};
    if ((flags & CLONE_NEWUSER) && ids_write_maps(&a->ids, pid, &e) < 0)
        attempt_err(ret, FINDING_MISSING, &e);
    else if (write(go_fd, "", 1) != 1)
        attempt_os(ret, FINDING_MISSING, "start the attempt");
    else
        await_answer(answer_fd, ret);
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

void attempt_run(uint64_t flags, attempt_fn *fn, const void *arg, struct answer *ret)
{
    struct attempt a = {.arg = arg};
    struct pale_err e = {0};
    int go[2], back[2];
    if ((flags & CLONE_NEWUSER) && ids_choose(&a.ids, 0, IDS_WANT_ONE, &e) < 0) {
        attempt_err(ret, FINDING_MISSING, &e);
        return;
    }
    if (pipe2(go, O_CLOEXEC) < 0) {
        attempt_os(ret, FINDING_MISSING, "make a pipe");
        return;
    }
    own_fd go_read = go[0], go_write = go[1];
    if (pipe2(back, O_CLOEXEC) < 0) {
        attempt_os(ret, FINDING_MISSING, "make a pipe");
        return;
    }
    own_fd back_read = back[0], back_write = back[1];
    struct clone_args c = {.flags = flags, .exit_signal = SIGCHLD};
    pid_t pid = k_clone3(&c);
    if (pid == 0) {
        own_close(&go_write);
        child_main(&a, flags, fn, go_read, back_write);
    }
    if (pid < 0) {
        attempt_os(ret, FINDING_MISSING, "clone3");
        return;
    }
    own_close(&go_read);
    own_close(&back_write);
    conduct(&a, flags, pid, go_write, back_read, ret);
}
