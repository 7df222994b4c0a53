/* SPDX-License-Identifier: Apache-2.0 */
/* Asks git for blobs by their names.
 *
 * It runs on the user's own repository, whose git folder a box in review mode cannot write, and asks for blobs alone: cat-file runs no
 * hook, filter, pager or monitor. What it could be made to do all the same (fetch what a partial clone lacks) is turned off, and a folder
 * that only looks like a repository is none. Only the user's own git configuration for this repository is read.
 *
 * Who asks has read what a box wrote and may be the box's by now: what is no name of an object is not asked for. */
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

#define NOT_KNOWN UINT64_MAX
#define OID_MAX 64
#define QUESTION_MAX (PATH_BYTES_MAX + 2)
#define STARTS_MAX 1000
#define CONTENT "content" /* the last blob that was asked for */

static bool is_oid(const char *text)
{
    size_t n = strlen(text);
    return (n == 40 || n == OID_MAX) && strspn(text, "0123456789abcdef") == n;
}

/* whole: with all of the user's configuration and attributes, which say what of his he has given to filters. */
static pid_t start_git(const char *project, const char *const words[4], bool whole, int in_fd, int out_fd)
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
                    (char *)"safe.bareRepository=explicit",
                    (char *)"-c",
                    (char *)(whole ? "core.quotePath=false" : "core.attributesFile=/dev/null"),
                    (char *)words[0],
                    (char *)words[1],
                    (char *)words[2],
                    (char *)words[3],
                    NULL};
    const char *config_dir = getenv("XDG_CONFIG_HOME");
    char path[] = "PATH=/usr/local/bin:/usr/bin:/bin", home[PATH_BYTES_MAX + 8], config[PATH_BYTES_MAX + 20];
    snprintf(home, sizeof(home), "HOME=%s", getenv("HOME") ? getenv("HOME") : "/");
    snprintf(config, sizeof(config), "XDG_CONFIG_HOME=%s", config_dir ? config_dir : "");
    char *envp[] = {path,
                    home,
                    config,
                    (char *)"GIT_OPTIONAL_LOCKS=0",
                    (char *)"GIT_NO_LAZY_FETCH=1",
                    (char *)"GIT_TERMINAL_PROMPT=0",
                    (char *)"LC_ALL=C",
                    whole ? NULL : (char *)"GIT_CONFIG_NOSYSTEM=1",
                    (char *)"GIT_CONFIG_GLOBAL=/dev/null",
                    (char *)"GIT_ATTR_NOSYSTEM=1",
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

struct talk {
    pid_t pid;
    FILE *to, *from;
};

static int begin_talk(struct talk *t, const char *project, const char *const words[4], bool whole)
{
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) < 0)
        return -1;
    own_fd its_in = in[0], my_out = in[1];
    if (pipe2(out, O_CLOEXEC) < 0)
        return -1;
    own_fd my_in = out[0], its_out = out[1];
    if ((t->pid = start_git(project, words, whole, its_in, its_out)) < 0 || !(t->to = fdopen(my_out, "w")))
        return -1;
    my_out = -1;
    if (!(t->from = fdopen(my_in, "r")))
        return -1;
    my_in = -1;
    return 0;
}

static void end_talk(struct talk *t)
{
    if (t->to)
        fclose(t->to);
    if (t->from)
        fclose(t->from);
    while (t->pid > 0 && waitpid(t->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    *t = (struct talk){0};
}

/* One blob into the folder: its size, or NOT_KNOWN. -1: git has ended. */
static int fetch(struct talk *t, const char *oid, int dir_fd, uint64_t *ret)
{
    char line[256], block[65536];
    uint64_t size = 0;
    *ret = NOT_KNOWN;
    if (fprintf(t->to, "%s\n", oid) < 0 || fflush(t->to) != 0 || !fgets(line, sizeof(line), t->from))
        return -1;
    if (!read_head(line, &size))
        return 0; /* it is gone, or no blob: a line is all there is to it */
    (void)unlinkat(dir_fd, CONTENT, 0);
    own_fd to = size <= TEXT_BYTES_MAX ? openat(dir_fd, CONTENT, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600) : -1;
    bool good = to >= 0;
    for (uint64_t at = 0; at < size;) {
        size_t n = fread(block, 1, size - at < sizeof(block) ? (size_t)(size - at) : sizeof(block), t->from);
        if (n == 0)
            return -1;
        good = good && fd_write_full(to, block, n);
        at += n;
    }
    if (fgetc(t->from) != '\n')
        return -1;
    if (good)
        *ret = size;
    return 0;
}

/* --- the process --- */

/* One field of what git tells about a path: up to its NUL. False: git has ended. */
static bool read_field(FILE *from, char *ret, size_t cap)
{
    size_t n = 0;
    for (int c; (c = fgetc(from)) != EOF; n++) {
        if (n < cap)
            ret[n] = (char)c;
        if (c == 0)
            return n < cap;
    }
    return false;
}

/* IGNORED if the user has told git to ignore the path, else 0. -1: git has ended. */
static int look_up_ignored(struct talk *t, const char *path, uint64_t *ret)
{
    char source[2 * PATH_BYTES_MAX], line[32], pattern[2 * PATH_BYTES_MAX], again[2 * PATH_BYTES_MAX];
    if (fwrite(path, 1, strlen(path) + 1, t->to) != strlen(path) + 1 || fflush(t->to) != 0 ||
        !read_field(t->from, source, sizeof(source)) || !read_field(t->from, line, sizeof(line)) ||
        !read_field(t->from, pattern, sizeof(pattern)) || !read_field(t->from, again, sizeof(again)))
        return -1;
    *ret = pattern[0] && pattern[0] != '!';
    return 0;
}

/* 1 if the user has given the path to a filter of git's, else 0. -1: git has ended. */
static int look_up_filter(struct talk *t, const char *path, uint64_t *ret)
{
    char again[2 * PATH_BYTES_MAX], attribute[32], value[256] = "";
    if (fwrite(path, 1, strlen(path) + 1, t->to) != strlen(path) + 1 || fflush(t->to) != 0 || !read_field(t->from, again, sizeof(again)) ||
        !read_field(t->from, attribute, sizeof(attribute)) || !read_field(t->from, value, sizeof(value)))
        return -1;
    *ret = strcmp(value, "unspecified") != 0 && strcmp(value, "unset") != 0;
    return 0;
}

/* --- the process --- */

/* What is asked, by its first letter: which object, is a path ignored, does a filter have it. */
static const struct kind {
    char letter;
    bool whole;
    const char *words[4];
} kinds[] = {{'o', false, {"cat-file", "--batch"}},
             {'i', false, {"check-ignore", "-zvn", "--stdin"}},
             {'f', true, {"check-attr", "-z", "--stdin", "filter"}}};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* -1: git has ended. */
static int ask_git(const struct gitbase *g, struct talk *t, char kind, const char *what, uint64_t *ret)
{
    if (kind == 'o')
        return is_oid(what) ? fetch(t, what, g->dir_fd, ret) : 0;
    return kind == 'i' ? look_up_ignored(t, what, ret) : look_up_filter(t, what, ret);
}

/* A question: its length, a letter, and the name of an object or a path. */
static bool read_question(int fd, char ret[QUESTION_MAX + 1])
{
    uint32_t n;
    if (fd_read_full(fd, &n, sizeof(n)) != (ssize_t)sizeof(n) || n < 2 || n > QUESTION_MAX || fd_read_full(fd, ret, n) != (ssize_t)n)
        return false;
    ret[n] = 0;
    return strlen(ret) == n;
}

/* Whatever the questions are: who asked waits for each. One git that ended is started again: a path can be too odd for it. */
static void answer(const struct gitbase *g, const char *project)
{
    struct talk talks[KINDS] = {0};
    char question[QUESTION_MAX + 1];
    for (int starts = 0; read_question(g->fd, question);) {
        uint64_t told = NOT_KNOWN;
        size_t k = 0;
        while (k < KINDS && kinds[k].letter != question[0])
            k++;
        if (k < KINDS && talks[k].pid == 0 && starts < STARTS_MAX) {
            starts++;
            if (begin_talk(&talks[k], project, kinds[k].words, kinds[k].whole) < 0)
                end_talk(&talks[k]);
        }
        if (k < KINDS && talks[k].pid > 0 && ask_git(g, &talks[k], question[0], question + 1, &told) < 0)
            end_talk(&talks[k]);
        if (!fd_write_full(g->fd, &told, sizeof(told)))
            break;
    }
    for (size_t k = 0; k < KINDS; k++)
        end_talk(&talks[k]);
}

/* Out of reach of the terminal's signals, so that the folder goes whatever becomes of whoever asked. */
static void __attribute__((noreturn)) serve(const struct gitbase *g, const char *project, const char *dir)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    (void)!setsid();
    (void)signal(SIGPIPE, SIG_IGN);
    for (int i = 0; null >= 0 && i < 3; i++)
        (void)!dup2(null, i);
    const int kept[] = {g->fd, g->dir_fd};
    if (seclusion_close_others(&(struct seclusion){.kept = kept, .kept_count = 2}, NULL) == 0)
        answer(g, project);
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

/* NOT_KNOWN as well if the process has died. */
static int ask(struct gitbase *g, char kind, const char *text, const char *end, uint64_t *ret, struct pale_err *e)
{
    char question[sizeof(uint32_t) + QUESTION_MAX + 1];
    struct sigaction ignore = {.sa_handler = SIG_IGN}, was;
    *ret = NOT_KNOWN;
    int n = snprintf(question + sizeof(uint32_t), QUESTION_MAX + 1, "%c%s%s", kind, text, end);
    if (g->fd < 0 || n < 2 || n > QUESTION_MAX)
        return 0;
    memcpy(question, &(uint32_t){(uint32_t)n}, sizeof(uint32_t));
    if (sigaction(SIGPIPE, &ignore, &was) < 0)
        return err_os(e, "ask git");
    bool sent = fd_write_full(g->fd, question, sizeof(uint32_t) + (size_t)n);
    (void)sigaction(SIGPIPE, &was, NULL);
    if (!sent || fd_read_full(g->fd, ret, sizeof(*ret)) != (ssize_t)sizeof(*ret))
        *ret = NOT_KNOWN;
    return 0;
}

int gitbase_ask(struct gitbase *g, const char *oid, int *ret_fd, uint64_t *ret_size, struct pale_err *e)
{
    uint64_t told;
    *ret_fd = -1;
    int r = ask(g, 'o', oid, "", &told, e);
    if (r < 0 || told == NOT_KNOWN)
        return r;
    *ret_fd = openat(g->dir_fd, CONTENT, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    *ret_size = told;
    return *ret_fd < 0 ? err_os(e, "open what git has told") : 0;
}

bool gitbase_is_ignored(struct gitbase *g, const char *path, bool folder)
{
    uint64_t told;
    return ask(g, 'i', path, folder ? "/" : "", &told, NULL) == 0 && told == 1;
}

bool gitbase_is_filtered(struct gitbase *g, const char *path)
{
    uint64_t told;
    return ask(g, 'f', path, "", &told, NULL) < 0 || told != 0;
}

void gitbase_end(struct gitbase *g)
{
    own_close(&g->fd);
    own_close(&g->dir_fd);
    while (g->pid > 0 && waitpid(g->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    g->pid = 0;
}
