/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the asking of git for committed files.
 *
 * It runs on the user's own repository, whose git folder a box in review mode cannot write, and asks for blobs alone: cat-file runs no
 * hook, filter, pager or monitor. What it could be made to do all the same (fetch what a partial clone lacks) is turned off, and a folder
 * that only looks like a repository is none. Only the user's own git configuration for this repository is read.
 *
 * Who asks has read what a box wrote and may be the box's by now: a path that leads out of the project is not asked for. */
#include "box/gitbase.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/number.h"
#include "base/own.h"
#include "confine/seclusion.h"

#define QUESTION_BYTES_MAX (CONFLICTS_MAX * PATH_BYTES_MAX)
#define NOT_KNOWN UINT64_MAX

/* Names, one below the other, that lead nowhere else; a name with a newline in it cannot be asked for. */
static bool can_be_asked(const char *path)
{
    if (strlen(path) >= PATH_BYTES_MAX || strchr(path, '\n'))
        return false;
    for (const char *at = path;; at++) {
        size_t n = strcspn(at, "/");
        if (n == 0 || (n == 1 && at[0] == '.') || (n == 2 && at[0] == '.' && at[1] == '.'))
            return false;
        at += n;
        if (!*at)
            return true;
    }
}

/* The questions, one on a line. */
static int write_questions(char *const *paths, size_t count)
{
    own_fd fd = memfd_create("questions", MFD_CLOEXEC);
    for (size_t i = 0; fd >= 0 && i < count; i++)
        if (dprintf(fd, "HEAD:./%s\n", paths[i]) < 0)
            return -1;
    return fd >= 0 && lseek(fd, 0, SEEK_SET) == 0 ? take_fd(&fd) : -1;
}

static pid_t start_git(const char *project, int in_fd, int out_fd)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    char *argv[] = {(char *)"git",
                    (char *)"-C",
                    (char *)project,
                    (char *)"-c",
                    (char *)"protocol.allow=never",
                    (char *)"-c",
                    (char *)"core.fsmonitor=false",
                    (char *)"-c",
                    (char *)"core.hooksPath=/dev/null",
                    (char *)"-c",
                    (char *)"core.attributesFile=/dev/null",
                    (char *)"-c",
                    (char *)"safe.bareRepository=explicit",
                    (char *)"cat-file",
                    (char *)"--batch",
                    NULL};
    char path[] = "PATH=/usr/local/bin:/usr/bin:/bin", home[PATH_BYTES_MAX + 8];
    snprintf(home, sizeof(home), "HOME=%s", getenv("HOME") ? getenv("HOME") : "/");
    char *envp[] = {path,
                    home,
                    (char *)"GIT_CONFIG_NOSYSTEM=1",
                    (char *)"GIT_CONFIG_GLOBAL=/dev/null",
                    (char *)"GIT_ATTR_NOSYSTEM=1",
                    (char *)"GIT_OPTIONAL_LOCKS=0",
                    (char *)"GIT_NO_LAZY_FETCH=1",
                    (char *)"GIT_TERMINAL_PROMPT=0",
                    (char *)"LC_ALL=C",
                    NULL};
    int null = open("/dev/null", O_RDWR);
    if (null >= 0 && dup2(in_fd, 0) == 0 && dup2(out_fd, 1) == 1 && dup2(null, 2) == 2)
        execvpe("git", argv, envp);
    _exit(127);
}

/* "NAME blob SIZE": the size; false for any other answer. */
static bool read_head(const char *line, uint64_t *ret)
{
    const char *kind = strchr(line, ' '), *size = kind ? strchr(kind + 1, ' ') : NULL;
    char digits[24];
    if (!size || strncmp(kind, " blob ", 6) != 0 || strcspn(size + 1, "\n") >= sizeof(digits))
        return false;
    snprintf(digits, sizeof(digits), "%.*s", (int)strcspn(size + 1, "\n"), size + 1);
    return number_u64(digits, INT64_MAX, ret);
}

/* The folders above it, then the file. */
static int put(int to_fd, const char *path, const void *p, size_t n, struct pale_err *e)
{
    char part[PATH_BYTES_MAX];
    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(part, sizeof(part), "%.*s", (int)(slash - path), path);
        if (mkdirat(to_fd, part, 0700) < 0 && errno != EEXIST)
            return err_os(e, "make a folder for what is committed");
    }
    own_fd fd = openat(to_fd, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    return fd < 0 || !fd_write_full(fd, p, n) ? err_os(e, "write what is committed") : 0;
}

static int take_answer(FILE *in, int to_fd, const char *path, size_t *ret, struct pale_err *e)
{
    char line[PATH_BYTES_MAX + 64];
    uint64_t size = 0;
    if (!fgets(line, sizeof(line), in))
        return 1; /* git has ended */
    if (!read_head(line, &size))
        return 0;
    own_mem char *content = size <= TEXT_BYTES_MAX ? malloc((size_t)size + 1) : NULL;
    if (size <= TEXT_BYTES_MAX && !content)
        return err_nomem(e);
    for (uint64_t at = 0; at < size;) {
        char skipped[65536];
        size_t want = content ? (size_t)(size - at) : size - at < sizeof(skipped) ? (size_t)(size - at) : sizeof(skipped);
        size_t n = fread(content ? content + at : skipped, 1, want, in);
        if (n == 0)
            return 1;
        at += n;
    }
    (void)fgetc(in); /* the newline after it */
    if (!content)
        return 0;
    int r = put(to_fd, path, content, (size_t)size, e);
    *ret += r == 0;
    return r;
}

static int copy(const char *project, char *const *paths, size_t count, int to_fd, size_t *ret, struct pale_err *e)
{
    int out[2], r = 0;
    *ret = 0;
    own_fd questions = write_questions(paths, count);
    if (questions < 0 || pipe2(out, O_CLOEXEC) < 0)
        return err_os(e, "ask git for what is committed");
    pid_t pid = start_git(project, questions, out[1]);
    close(out[1]);
    FILE *in = fdopen(out[0], "r");
    if (!in)
        close(out[0]);
    for (size_t i = 0; in && pid > 0 && r == 0 && i < count; i++)
        r = take_answer(in, to_fd, paths[i], ret, e);
    if (in)
        fclose(in);
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return r < 0 ? r : 0;
}

/* --- the process --- */

/* One question: its length, and paths that each end in a NUL. Those that may not be asked for are left out. */
static int read_question(int fd, struct buf *text, char ***ret, size_t *ret_count)
{
    uint32_t len;
    size_t n = 0;
    buf_init(text, QUESTION_BYTES_MAX);
    if (fd_read_full(fd, &len, sizeof(len)) != (ssize_t)sizeof(len) || len == 0 || len > QUESTION_BYTES_MAX || !buf_reserve(text, len) ||
        fd_read_full(fd, text->data, len) != (ssize_t)len || text->data[len - 1] != 0)
        return -1;
    char *end = (char *)text->data + len, **paths = calloc(CONFLICTS_MAX, sizeof(*paths));
    for (char *at = (char *)text->data; paths && at < end; at += strlen(at) + 1)
        if (n < CONFLICTS_MAX && can_be_asked(at))
            paths[n++] = at;
    *ret = paths;
    *ret_count = n;
    return paths ? 0 : -1;
}

/* Whatever the question was: who asked waits. */
static void answer(const struct gitbase *g, const char *project)
{
    own_buf text = {0};
    own_mem char **paths = NULL;
    size_t count = 0, found = 0;
    uint64_t told = NOT_KNOWN;
    if (read_question(g->fd, &text, &paths, &count) == 0 && copy(project, paths, count, g->dir_fd, &found, NULL) == 0)
        told = found;
    (void)fd_write_full(g->fd, &told, sizeof(told));
}

/* Out of reach of the terminal's signals, so that the folder goes whatever becomes of whoever asked. */
static void __attribute__((noreturn)) serve(const struct gitbase *g, const char *project, const char *dir)
{
    char end;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    (void)!setsid();
    (void)signal(SIGPIPE, SIG_IGN);
    for (int i = 0; null >= 0 && i < 3; i++)
        (void)!dup2(null, i);
    const int kept[] = {g->fd, g->dir_fd};
    if (seclusion_close_others(&(struct seclusion){.kept = kept, .kept_count = 2}, NULL) == 0)
        answer(g, project);
    (void)!fd_read_full(g->fd, &end, 1);
    _exit(fd_remove_tree(AT_FDCWD, dir, NULL) < 0);
}

int gitbase_start(struct gitbase *g, const char *project, const char *state, struct pale_err *e)
{
    char dir[PATH_BYTES_MAX];
    int pair[2];
    snprintf(dir, sizeof(dir), "%s/committed-XXXXXX", state);
    if (!mkdtemp(dir))
        return err_os(e, "make %s", dir);
    own_fd to = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (to < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
        int r = err_os(e, "open %s", dir);
        (void)rmdir(dir);
        return r;
    }
    own_fd mine = pair[0], its = pair[1];
    pid_t pid = fork();
    if (pid < 0) {
        int r = err_os(e, "start a process that asks git");
        (void)rmdir(dir);
        return r;
    }
    if (pid == 0) {
        own_close(&mine);
        serve(&(struct gitbase){.fd = its, .dir_fd = to}, project, dir);
    }
    *g = (struct gitbase){.pid = pid, .fd = take_fd(&mine), .dir_fd = take_fd(&to)};
    return 0;
}

static bool send_question(int fd, char *const *paths, size_t count)
{
    size_t len = 0;
    for (size_t i = 0; i < count; i++)
        len += strlen(paths[i]) + 1;
    uint32_t told = (uint32_t)len;
    bool sent = len <= QUESTION_BYTES_MAX && fd_write_full(fd, &told, sizeof(told));
    for (size_t i = 0; sent && i < count; i++)
        sent = fd_write_full(fd, paths[i], strlen(paths[i]) + 1);
    return sent;
}

int gitbase_ask(struct gitbase *g, char *const *paths, size_t count, size_t *ret, struct pale_err *e)
{
    uint64_t told = NOT_KNOWN;
    struct sigaction ignore = {.sa_handler = SIG_IGN}, was;
    /* One that has died is an error like others. */
    if (sigaction(SIGPIPE, &ignore, &was) < 0)
        return err_os(e, "ask git");
    bool sent = send_question(g->fd, paths, count);
    (void)sigaction(SIGPIPE, &was, NULL);
    if (!sent || fd_read_full(g->fd, &told, sizeof(told)) != (ssize_t)sizeof(told) || told > count)
        return err_set(e, PALE_GONE, "git could not be asked for what is committed; what is in conflict stays as it is");
    *ret = (size_t)told;
    return 0;
}

void gitbase_end(struct gitbase *g)
{
    own_close(&g->fd);
    own_close(&g->dir_fd);
    while (g->pid > 0 && waitpid(g->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    g->pid = 0;
}
