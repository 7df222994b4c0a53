/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the running of errands. The child does nothing before its ids are mapped, and reports in one struct. */
#include "confine/errand.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "confine/kernel.h"

static void __attribute__((noreturn)) child_main(int go_fd, int report_fd, errand_fn *fn, void *arg)
{
    struct pale_err e = {0};
    char go;
    if (fd_read_full(go_fd, &go, 1) != 1)
        _exit(1);
    if (fn(arg, &e) == 0)
        e.code = PALE_OK;
    _exit(fd_write_full(report_fd, &e, sizeof(e)) ? 0 : 1);
}

static int conduct(const struct ids *ids, pid_t pid, int go_fd, int report_fd, struct pale_err *e)
{
    struct pale_err report;
    int r = ids_write_maps(ids, pid, e);
    if (r < 0)
        return r;
    if (write(go_fd, "", 1) != 1)
        return err_os(e, "start the work in a user namespace");
    if (fd_read_full(report_fd, &report, sizeof(report)) != (ssize_t)sizeof(report) || report.code >= PALE_CODE_COUNT)
        return err_set(e, PALE_INTERNAL, "the work in a user namespace ended early");
    if (report.code != PALE_OK && e)
        *e = report;
    return -(int)report.code;
}

int errand_run(const struct ids *ids, errand_fn *fn, void *arg, struct pale_err *e)
{
    int go[2], report[2];
    if (pipe2(go, O_CLOEXEC) < 0)
        return err_os(e, "make a pipe");
    own_fd go_read = go[0], go_write = go[1];
    if (pipe2(report, O_CLOEXEC) < 0)
        return err_os(e, "make a pipe");
    own_fd report_read = report[0], report_write = report[1];
    struct clone_args a = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
    pid_t pid = k_clone3(&a);
    if (pid < 0)
        return err_os(e, "make a user namespace");
    if (pid == 0) {
        own_close(&go_write);
        child_main(go_read, report_write, fn, arg);
    }
    own_close(&report_write);
    int r = conduct(ids, pid, go_write, report_read, e);
    own_close(&go_write);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return r;
}
