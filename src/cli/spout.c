/* SPDX-License-Identifier: Apache-2.0 */
/* Owns spouts. */
#include "cli/spout.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"

#define PIECE (128u << 10)
#define STOP_LOOK_MS 100

struct report {
    char hex[SHA256_HEX];
    uint64_t bytes;
};

/* Everything goes through here once; a reader that is gone ends us by a signal. */
static _Noreturn void feed(int from, int to, int report_fd)
{
    static uint8_t piece[PIECE];
    struct sha256 h;
    uint8_t d[SHA256_BYTES];
    struct report report = {0};
    signal(SIGPIPE, SIG_DFL);
    sha256_init(&h);
    for (;;) {
        ssize_t n = read(from, piece, sizeof(piece));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 || (n > 0 && !fd_write_full(to, piece, (size_t)n)))
            _exit(1);
        if (n == 0)
            break;
        sha256_add(&h, piece, (size_t)n);
        report.bytes += (uint64_t)n;
    }
    sha256_final(&h, d);
    sha256_to_hex(d, report.hex);
    _exit(fd_write_full(report_fd, &report, sizeof(report)) ? 0 : 1);
}

int spout_file(struct spout *s, int file_fd, struct pale_err *e)
{
    int data[2] = {-1, -1}, report[2] = {-1, -1};
    if (pipe2(data, O_CLOEXEC) < 0)
        return err_os(e, "make a pipe");
    s->fd = data[0];
    own_fd write_end = data[1];
    if (pipe2(report, O_CLOEXEC) < 0)
        return err_os(e, "make a pipe");
    s->report_fd = report[0];
    own_fd report_end = report[1];
    s->feeder = fork();
    if (s->feeder == 0) {
        close(s->fd), close(s->report_fd);
        feed(file_fd, write_end, report_end);
    }
    return s->feeder < 0 ? err_os(e, "start a process") : 0;
}

static _Noreturn void become(char *const argv[], const char *const *env, int out, pid_t parent)
{
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    static const int usual[] = {SIGINT, SIGTERM, SIGQUIT, SIGHUP, SIGPIPE, SIGUSR1, SIGUSR2};
    for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
        signal(usual[i], SIG_DFL);
    for (; env && *env; env += 2)
        setenv(env[0], env[1], 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() == parent && null >= 0 && dup2(null, 0) == 0 && dup2(out, 1) == 1)
        execvp(argv[0], argv);
    _exit(errno == ENOENT ? 127 : 126);
}

int spout_program(struct spout *s, char *const argv[], const char *const *env, struct pale_err *e)
{
    int data[2] = {-1, -1};
    pid_t parent = getpid();
    if (pipe2(data, O_CLOEXEC) < 0)
        return err_os(e, "make a pipe");
    own_fd read_end = data[0], write_end = data[1];
    s->name = argv[0];
    s->program = fork();
    if (s->program == 0)
        become(argv, env, write_end, parent);
    if (s->program < 0)
        return err_os(e, "start %s", argv[0]);
    own_close(&write_end); /* or the feeder would have it too, and never see the end */
    return spout_file(s, read_end, e);
}

static int await(pid_t *pid)
{
    int status = 0;
    while (*pid > 0 && waitpid(*pid, &status, 0) < 0 && errno == EINTR)
        ;
    *pid = -1;
    return status;
}

static int judge_program(const char *name, int status, struct pale_err *e)
{
    if (status == 0)
        return 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
        return err_set(e, PALE_UNSUPPORTED, "there is no %s on this host; install the package %s", name, name);
    if (WIFSIGNALED(status))
        return err_set(e, PALE_GONE, "%s was ended by signal %d", name, WTERMSIG(status));
    return err_set(e, PALE_OS, "%s failed with status %d; what it says above tells why", name, WEXITSTATUS(status));
}

/* What is behind the end of an archive may be long in coming. */
static bool await_report(const struct spout *s)
{
    struct pollfd p = {.fd = s->report_fd, .events = POLLIN};
    while (!s->stop || !*s->stop)
        if (poll(&p, 1, STOP_LOOK_MS) > 0)
            return true;
    return false;
}

int spout_end(struct spout *s, char ret_hex[SHA256_HEX], uint64_t *ret_bytes, struct pale_err *e)
{
    struct report report;
    own_close(&s->fd);
    if (!await_report(s))
        return err_set(e, PALE_GONE, "interrupted");
    int r = judge_program(s->name, await(&s->program), e);
    bool whole = fd_read_full(s->report_fd, &report, sizeof(report)) == (ssize_t)sizeof(report);
    await(&s->feeder);
    if (r < 0)
        return r;
    if (!whole)
        return err_set(e, PALE_OS, "the source could not be read to its end");
    memcpy(ret_hex, report.hex, SHA256_HEX);
    ret_hex[SHA256_HEX - 1] = 0;
    *ret_bytes = report.bytes;
    return 0;
}

void spout_close(struct spout *s)
{
    own_close(&s->fd);
    own_close(&s->report_fd);
    if (s->program > 0)
        kill(s->program, SIGTERM);
    if (s->feeder > 0)
        kill(s->feeder, SIGKILL);
    await(&s->feeder);
    await(&s->program);
}
