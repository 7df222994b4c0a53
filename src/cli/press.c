/* SPDX-License-Identifier: Apache-2.0 */
/* Owns presses. */
#include "cli/press.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

int press_find(const char **ret_path, struct pale_err *e)
{
    static const char *const paths[] = {"/usr/bin/zstd", "/bin/zstd", "/usr/local/bin/zstd"};
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        if (access(paths[i], X_OK) == 0) {
            *ret_path = paths[i];
            return 0;
        }
    return err_set(e, PALE_UNSUPPORTED, "there is no zstd on this host; install the package zstd, or write it uncompressed with --plain");
}

static _Noreturn void become(const char *path, int in, int out, pid_t parent)
{
    char *const argv[] = {(char *)"zstd", (char *)"-q", (char *)"-c", NULL};
    char *const env[] = {NULL};
    signal(SIGPIPE, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent && dup2(in, 0) == 0 && dup2(out, 1) == 1)
        execve(path, argv, env);
    _exit(126);
}

int press_open(struct press *p, int out_fd, struct pale_err *e)
{
    const char *path = NULL;
    int ends[2];
    pid_t parent = getpid();
    int r = press_find(&path, e);
    if (r < 0)
        return r;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_os(e, "make a pipe");
    p->fd = ends[1];
    own_fd in = ends[0];
    p->pid = fork();
    if (p->pid == 0)
        become(path, in, out_fd, parent);
    return p->pid < 0 ? err_os(e, "start zstd") : 0;
}

static int await(struct press *p)
{
    int status = -1;
    own_close(&p->fd);
    while (p->pid > 0 && waitpid(p->pid, &status, 0) < 0 && errno == EINTR)
        ;
    p->pid = -1;
    return status;
}

int press_end(struct press *p, struct pale_err *e)
{
    return await(p) == 0 ? 0 : err_set(e, PALE_OS, "zstd failed; what it says above tells why");
}

void press_close(struct press *p)
{
    if (p->pid > 0)
        kill(p->pid, SIGKILL);
    await(p);
}
