/* SPDX-License-Identifier: Apache-2.0 */
/* Counts what a box has changed in a project for review and nobody has landed.
 *
 * How it works: the box's layers are hostile, and whoever compares them gives up every right but to read them, for good. So a child does
 * it, which prints the names of the changed files; the parent counts lines and understands nothing of them. */
#include "box/unlanded.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "box/life.h"
#include "box/rendition.h"
#include "box/review.h"

#define COUNTED_MOST 1000
#define REMEDY "`pale diff %s` shows it, `pale apply %s` lands it; to remove the box all the same: pale rm -f %s"

static int pass_on(void *arg, const void *p, size_t n, struct pale_err *e)
{
    return fd_write_full(*(const int *)arg, p, n) ? 0 : err_os(e, "tell what has changed");
}

static void __attribute__((noreturn)) print_names(const struct place *p, int out_fd)
{
    struct pale_err e;
    own_review v = {.base_fd = -1};
    int r = review_open(p, PART_PROJECT, NULL, NULL, &v, &e);
    if (r == 0)
        r = rendition_write(&v, &(struct rendition){.form = RENDITION_NAMES, .under = "", .out = pass_on, .arg = &out_fd, .out_fd = out_fd},
                            &e);
    _exit(r < 0 ? 1 : 0);
}

/* *ret: how many lines there are, at most COUNTED_MOST. False: it could not be compared. */
static bool count_names(const struct place *p, unsigned *ret)
{
    int pipe_fd[2], status = -1;
    *ret = 0;
    if (pipe2(pipe_fd, O_CLOEXEC) < 0)
        return false;
    pid_t pid = fork();
    if (pid == 0) {
        close(pipe_fd[0]);
        print_names(p, pipe_fd[1]);
    }
    close(pipe_fd[1]);
    own_fd in = pipe_fd[0];
    char block[4096];
    ssize_t n = 0;
    while (pid > 0 && *ret < COUNTED_MOST && ((n = read(in, block, sizeof(block))) > 0 || (n < 0 && errno == EINTR)))
        for (ssize_t i = 0; i < n && *ret < COUNTED_MOST; i++)
            *ret += block[i] == '\n';
    own_close(&in); /* one that has more to say ends of it */
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return *ret == COUNTED_MOST || (pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int unlanded_refuse(const struct place *p, struct pale_err *e)
{
    own_policy policy = {0};
    unsigned count = 0;
    if (life_policy(p, &policy, NULL) < 0 || policy.project != PROJECT_REVIEW)
        return 0; /* of a box that cannot be used any more nothing could be landed either */
    if (!count_names(p, &count))
        return err_set(e, PALE_CONFLICT, "box %s may have work that has not landed: it cannot be compared with its project. " REMEDY,
                       p->name, p->name, p->name, p->name);
    if (count == 0)
        return 0;
    return err_set(e, PALE_CONFLICT, "box %s has work that has not landed: %s%u file%s of its project. " REMEDY, p->name,
                   count == COUNTED_MOST ? "more than " : "", count - (count == COUNTED_MOST), count == 1 ? "" : "s", p->name, p->name,
                   p->name);
}
