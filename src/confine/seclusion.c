/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the giving up of rights before a tree of a box is read, and the children that do such work. */
#include "confine/seclusion.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "base/weak.h"
#include "confine/kernel.h"
#include "confine/seccomp.h"

/* --- going in --- */

/* The next descriptor from `from` on that stays open; -1: none. */
static int next_kept(const struct seclusion *s, int from)
{
    int next = -1;
    for (size_t i = 0; i < s->place_count; i++)
        if (s->places[i].fd >= from && (next < 0 || s->places[i].fd < next))
            next = s->places[i].fd;
    for (size_t i = 0; i < s->kept_count; i++)
        if (s->kept[i] >= from && (next < 0 || s->kept[i] < next))
            next = s->kept[i];
    return next;
}

int seclusion_close_others(const struct seclusion *s, struct pale_err *e)
{
    for (int from = 3;;) {
        int next = next_kept(s, from);
        if (next != from && k_close_range((unsigned)from, next < 0 ? ~0u : (unsigned)next - 1, 0) < 0)
            return err_os(e, "close what is not needed");
        if (next < 0)
            return 0;
        from = next + 1;
    }
}

static bool is_writer(const struct seclusion *s)
{
    for (size_t i = 0; i < s->place_count; i++)
        if (s->places[i].use >= LANDLOCK_FILL)
            return true;
    return false;
}

/* What must not be there any more. Programs and sockets cannot be tried: the attempt would end us. */
static int verify(struct pale_err *e)
{
    own_fd root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root >= 0 || errno != EACCES)
        return err_set(e, PALE_INTERNAL, "the host's files could still be read; what a box wrote is not looked at so");
    return 0;
}

#ifdef PALE_WEAKEN
/* TEST ONLY: what whoever took over the reader would try. PALE_SECLUDED_TRY names one deed and a path for it. */
static void try_deed(void)
{
    const char *deed = getenv("PALE_SECLUDED_TRY"), *path = deed ? strchr(deed, ':') : NULL;
    char *const argv[] = {(char *)"true", NULL};
    if (!path++)
        return;
    int r = strncmp(deed, "read:", 5) == 0     ? open(path, O_RDONLY | O_CLOEXEC)
            : strncmp(deed, "write:", 6) == 0  ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600)
            : strncmp(deed, "exec:", 5) == 0   ? execv(path, argv)
            : strncmp(deed, "socket:", 7) == 0 ? socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)
                                               : -1;
    char told[64];
    int n = snprintf(told, sizeof(told), "secluded: %s\n", r < 0 ? "refused" : "done");
    (void)!fd_write_full(2, told, (size_t)n);
}
#else
static void try_deed(void)
{
}
#endif

static int lock_up(const struct seclusion *s, struct pale_err *e)
{
    const struct rlimit none = {0, 0};
    bool writer = is_writer(s);
    /* Before Linux 5.19 whoever is in a Landlock domain cannot move a name to another folder, as landing does: the list must do. */
    int abi = landlock_abi(); /* below 0: not known, which is told below and is no reason to go without */
    bool landlock = abi < 0 || abi > (writer ? 1 : 0);
    int r;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || setrlimit(RLIMIT_CORE, &none) < 0)
        return err_os(e, "give up new privileges");
    if (landlock && ((r = landlock_restrict_to(s->places, s->place_count, e)) < 0 || (r = verify(e)) < 0))
        return r;
    return seccomp_load(seccomp_for_program(writer ? OWN_TREE_WRITER : OWN_TREE_READER), e);
}

int seclusion_enter(const struct seclusion *s, struct pale_err *e)
{
    int r = weak_word("tree-lock") ? 0 : seclusion_close_others(s, e);
    if (r == 0 && !weak_word("tree-lock"))
        r = lock_up(s, e);
    if (r < 0)
        return err_prefix(e, "lock up before what a box wrote is read");
    try_deed();
    return 0;
}

/* --- children --- */

/* What a child tells of a step. */
struct answer {
    struct pale_err err;
    uint8_t found[SECLUSION_ANSWER_MAX];
};

static void __attribute__((noreturn)) child_main(const struct seclusion *s, int fd, pid_t parent, seclusion_fn *fn, void *arg)
{
    own_mem int *kept = calloc(s->kept_count + 1, sizeof(*kept));
    struct seclusion mine = *s;
    struct answer a = {0};
    uint8_t step;
    if (!kept || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
        _exit(1);
    if (s->kept_count > 0)
        memcpy(kept, s->kept, s->kept_count * sizeof(*kept));
    kept[mine.kept_count++] = fd;
    mine.kept = kept;
    int entered = seclusion_enter(&mine, &a.err);
    while (fd_read_full(fd, &step, 1) == 1) {
        if (entered == 0)
            a = (struct answer){0};
        if (entered == 0 && fn(arg, step, a.found, &a.err) == 0)
            a.err.code = PALE_OK;
        if (!fd_write_full(fd, &a, sizeof(a)))
            _exit(1);
    }
    _exit(0);
}

int seclusion_start(struct secluded *c, const struct seclusion *s, seclusion_fn *fn, void *arg, struct pale_err *e)
{
    int pair[2];
    pid_t parent = getpid();
    *c = (struct secluded){.fd = -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return err_os(e, "make a pair of sockets");
    own_fd mine = pair[0], its = pair[1];
    pid_t pid = fork();
    if (pid < 0)
        return err_os(e, "start a process for what a box wrote");
    if (pid == 0) {
        own_close(&mine);
        child_main(s, its, parent, fn, arg);
    }
    c->pid = pid;
    c->fd = take_fd(&mine);
    return 0;
}

/* Its text is for people: it ends, and holds nothing that a terminal would obey. */
static void tame(struct pale_err *err)
{
    err->text[sizeof(err->text) - 1] = 0;
    for (char *at = err->text; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 0x7f)
            *at = '?';
}

static const char ended_early[] = "the process that reads what a box wrote ended early; nothing of its work is used";

int seclusion_ask(struct secluded *c, unsigned step, struct pale_err *e)
{
    uint8_t ask = (uint8_t)step;
    ssize_t sent;
    while ((sent = send(c->fd, &ask, 1, MSG_NOSIGNAL)) < 0 && errno == EINTR)
        ;
    return sent == 1 ? 0 : err_set(e, PALE_INTERNAL, "%s", ended_early);
}

int seclusion_step(struct secluded *c, unsigned step, void *ret, size_t n, struct pale_err *e)
{
    int r = seclusion_ask(c, step, e);
    return r < 0 ? r : seclusion_answer(c, ret, n, e);
}

int seclusion_answer(struct secluded *c, void *ret, size_t n, struct pale_err *e)
{
    struct answer a;
    assert(n <= sizeof(a.found));
    if (fd_read_full(c->fd, &a, sizeof(a)) != (ssize_t)sizeof(a))
        return err_set(e, PALE_INTERNAL, "%s", ended_early);
    if ((unsigned)a.err.code >= PALE_CODE_COUNT)
        return err_set(e, PALE_PROTOCOL, "the process that reads what a box wrote does not speak our language");
    tame(&a.err);
    if (a.err.code != PALE_OK) {
        if (e)
            *e = a.err;
        return -(int)a.err.code;
    }
    if (n > 0)
        memcpy(ret, a.found, n);
    return 0;
}

void seclusion_end(struct secluded *c)
{
    own_close(&c->fd);
    while (c->pid > 0 && waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    c->pid = 0;
}

int seclusion_run(const struct seclusion *s, seclusion_fn *fn, void *arg, void *ret, size_t n, struct pale_err *e)
{
    own_secluded c = {.fd = -1};
    int r = seclusion_start(&c, s, fn, arg, e);
    return r < 0 ? r : seclusion_step(&c, 0, ret, n, e);
}
