/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the mounts that guard names in a living box.
 *
 * How it works: the kernel counts a detached mount as a namespace, and the box's user namespace may make no more of those once its wall
 * stands. So a name is bound over itself in the old way, by the descriptors of both, and made read-only then: the mount is never weaker
 * than what was there before. Descriptors are named through the host's /proc, which is held open: the box's own does not show us. A name
 * that the box swaps meanwhile gets a mount that does not show at its place; that is seen, and tried again. */
#include "warden/mantle.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/stat.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/own.h"
#include "base/weak.h"
#include "confine/kernel.h"
#include "confine/mounts.h"
#include "confine/seccomp.h"

#define TRIES 8
#define ATTR_MOUNT_ROOT 0x00002000u /* STATX_ATTR_MOUNT_ROOT, which old headers do not have */

enum order { ORDER_ENTER = 'e', ORDER_LAY = 'l', ORDER_GIVE = 'g', ORDER_LOOK = '?' };

struct request {
    char order;
    char path[PATH_BYTES_MAX];
};

struct answer {
    int result;
    struct pale_err e;
};

/* What the process has in hand. */
struct side {
    int fd, user_fd, mount_fd, proc_fd, project_fd;
    int empty_fd; /* an empty folder of the box's root; -1: there is none */
    const char *project;
};

static bool is_mount(int fd)
{
    struct statx st;
    return syscall(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_INO, &st) == 0 && (st.stx_attributes_mask & ATTR_MOUNT_ROOT) &&
           (st.stx_attributes & ATTR_MOUNT_ROOT);
}

static int open_at(const struct side *s, const char *path, struct pale_err *e)
{
    int fd = fd_open_beneath(s->project_fd, path, O_PATH, 0);
    if (fd < 0 && errno == ELOOP)
        return err_set(e, PALE_DENIED,
                       "%s is or lies behind a symlink, which cannot be guarded; replace it, take its name off the "
                       "policy's guard list, or mount the project ro",
                       path);
    return fd < 0 ? err_os(e, "guard %s", path) : fd;
}

/* The .pale of a project: what boxes of other projects have there is nobody's to read. */
static bool is_hidden(const struct side *s, int fd, const char *path)
{
    static const char word[] = ".pale";
    const char *slash = strrchr(path, '/');
    struct statx st;
    return s->empty_fd >= 0 && strcasecmp(slash ? slash + 1 : path, word) == 0 &&
           syscall(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_TYPE, &st) == 0 && S_ISDIR(st.stx_mode);
}

/* Binds what stands at path over itself, or, if it is to be hidden, an empty folder. */
static int bind_over(const struct side *s, const char *path, struct pale_err *e)
{
    char name[32], from[32];
    for (int i = 0; i < TRIES; i++) {
        own_fd at = open_at(s, path, e);
        if (at < 0)
            return at;
        if (is_mount(at))
            return 0;
        snprintf(name, sizeof(name), "self/fd/%d", at);
        snprintf(from, sizeof(from), "self/fd/%d", is_hidden(s, at, path) ? s->empty_fd : at);
        if (mount(from, name, NULL, MS_BIND | MS_REC, NULL) < 0)
            return err_os(e, "guard %s", path);
    }
    return err_set(e, PALE_BUSY, "guard %s: it is moved about without end", path);
}

/* Every folder above it first, from the top. */
static int lay(const struct side *s, char *path, struct pale_err *e)
{
    int r = 0;
    for (char *slash = strchr(path, '/'); r == 0 && slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        r = bind_over(s, path, e);
        *slash = '/';
    }
    if (r < 0 || (r = bind_over(s, path, e)) < 0)
        return r;
    own_fd top = open_at(s, path, e);
    if (top < 0)
        return top;
    return is_mount(top) ? mounts_restrict(top, MOUNTS_RO | MOUNTS_RECURSIVE, e) : err_set(e, PALE_BUSY, "guard %s: it was moved", path);
}

/* Behind the wall we have every right over the box's ids, and over no other. */
static int give(const struct side *s, const char *path, struct pale_err *e)
{
    struct statx st;
    own_fd at = open_at(s, path, e);
    if (at < 0)
        return at;
    if (syscall(SYS_statx, s->project_fd, "", AT_EMPTY_PATH, STATX_UID | STATX_GID, &st) < 0 ||
        fchownat(at, "", st.stx_uid, st.stx_gid, AT_EMPTY_PATH) < 0)
        return err_os(e, "give %s to the owner of the project", path);
    return 0;
}

/* Gives up: the host's files, and every system call but those that mounting takes. */
static int enter(struct side *s, struct pale_err *e)
{
    if (setns(s->user_fd, CLONE_NEWUSER) < 0 || setns(s->mount_fd, CLONE_NEWNS) < 0)
        return err_os(e, "enter the box to guard its project");
    own_fd root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0 || (s->project_fd = fd_open_beneath(root, s->project + 1, O_PATH | O_DIRECTORY, 0)) < 0)
        return err_os(e, "open the project in the box");
    s->empty_fd = fd_open_beneath(root, "dev/.empty", O_PATH | O_DIRECTORY, 0);
    if (s->empty_fd < 0)
        s->empty_fd = fd_open_beneath(root, "etc/skel", O_PATH | O_DIRECTORY, 0);
    if (s->empty_fd < 0)
        return err_os(e, "open an empty folder of the box");
    if (weak_word("projects"))
        own_close(&s->empty_fd);
    own_close(&s->user_fd);
    own_close(&s->mount_fd);
    if (fchdir(s->proc_fd) < 0)
        return err_os(e, "enter /proc");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_os(e, "give up new privileges");
    return seccomp_load(seccomp_for_program(OWN_MANTLE), e);
}

static int serve_one(struct side *s, struct request *q, struct pale_err *e)
{
    if (q->order == ORDER_ENTER)
        return enter(s, e);
    if (q->order == ORDER_LAY)
        return lay(s, q->path, e);
    if (q->order == ORDER_GIVE)
        return give(s, q->path, e);
    own_fd at = open_at(s, q->path, e);
    return at < 0 ? at : is_mount(at) ? 0 : err_set(e, PALE_NOT_FOUND, "no mount");
}

static void __attribute__((noreturn)) serve(struct side *s)
{
    struct request q;
    ssize_t n;
    while ((n = recv(s->fd, &q, sizeof(q), 0)) > 0 || (n < 0 && errno == EINTR)) {
        struct answer a = {0};
        if (n < 0)
            continue;
        ((char *)&q)[n < (ssize_t)sizeof(q) ? n : (ssize_t)sizeof(q) - 1] = 0;
        a.result = serve_one(s, &q, &a.e);
        if (send(s->fd, &a, sizeof(a), MSG_NOSIGNAL) < 0)
            break;
    }
    _exit(0);
}

int mantle_start(struct mantle *l, int user_fd, int mount_fd, const char *project, struct pale_err *e)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_os(e, "make a socket pair");
    pid_t pid = fork();
    if (pid == 0) {
        struct side s = {.user_fd = user_fd, .mount_fd = mount_fd, .project_fd = -1, .empty_fd = -1, .project = project};
        s.fd = fcntl(pair[1], F_DUPFD_CLOEXEC, 32);
        s.proc_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
        for (int fd = 0; fd < 32; fd++)
            if (fd != user_fd && fd != mount_fd && fd != s.proc_fd)
                close(fd);
        if (s.fd < 0 || s.proc_fd < 0)
            _exit(1);
        serve(&s);
    }
    close(pair[1]);
    if (pid < 0) {
        close(pair[0]);
        return err_os(e, "start the mantle");
    }
    *l = (struct mantle){.fd = pair[0], .pid = pid};
    return 0;
}

static int ask(struct mantle *l, char order, const char *path, struct pale_err *e)
{
    struct request q = {.order = order};
    struct answer a;
    size_t n = strlen(path);
    if (n >= sizeof(q.path))
        return err_set(e, PALE_LIMIT, "a path longer than %d bytes cannot be guarded", PATH_BYTES_MAX);
    memcpy(q.path, path, n + 1);
    if (send(l->fd, &q, offsetof(struct request, path) + n + 1, MSG_NOSIGNAL) < 0)
        return err_os(e, "speak to the mantle");
    ssize_t got;
    while ((got = recv(l->fd, &a, sizeof(a), 0)) < 0 && errno == EINTR)
        ;
    if (got != (ssize_t)sizeof(a))
        return err_set(e, PALE_GONE, "the process that guards names in the box has died");
    if (a.result < 0 && e)
        *e = a.e;
    return a.result;
}

int mantle_enter(struct mantle *l, struct pale_err *e)
{
    return ask(l, ORDER_ENTER, "", e);
}

int mantle_lay(struct mantle *l, const char *path, struct pale_err *e)
{
    return ask(l, ORDER_LAY, path, e);
}

int mantle_give(struct mantle *l, const char *path, struct pale_err *e)
{
    return ask(l, ORDER_GIVE, path, e);
}

bool mantle_is_laid(struct mantle *l, const char *path)
{
    return ask(l, ORDER_LOOK, path, NULL) == 0;
}
