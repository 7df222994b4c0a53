/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the hearing of what a program says. */
#include "cli/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"

int listen_to(char *const argv[], struct buf *out, struct pale_err *e)
{
    int p[2], status = -1;
    if (pipe2(p, O_CLOEXEC) < 0)
        return err_os(e, "make a pipe");
    own_fd from = p[0], to = p[1];
    pid_t pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (null >= 0 && dup2(null, 0) == 0 && dup2(to, 1) == 1 && dup2(null, 2) == 2)
            execvp(argv[0], argv);
        _exit(127);
    }
    own_close(&to);
    if (pid < 0)
        return err_os(e, "start %s", argv[0]);
    int r = fd_read_all(from, out, e);
    own_close(&from);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (r < 0)
        return err_prefix(e, "%s", argv[0]);
    return status == 0 ? 0 : err_set(e, PALE_OS, "%s failed", argv[0]);
}
