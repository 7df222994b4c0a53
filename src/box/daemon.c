/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the way to the daemon. */
#include "box/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/number.h"
#include "base/own.h"
#include "base/weak.h"
#include "box/place.h"
#include "box/reach.h"

#define START_WAIT_MS 10000
#define STOP_WAIT_MS 15000
#define PAUSE_US 5000

int daemon_paths(struct daemon_paths *ret, struct pale_err *e)
{
    char runtime[RUNTIME_BYTES_MAX + 1], state[PATH_BYTES_MAX - 64];
    int r = place_runtime_dir(runtime, sizeof(runtime), e);
    if (r == 0)
        r = place_state_dir(state, sizeof(state), e);
    if (r < 0)
        return r;
    snprintf(ret->socket, sizeof(ret->socket), "%s/paled.sock", runtime);
    snprintf(ret->lock, sizeof(ret->lock), "%s/paled.lock", runtime);
    snprintf(ret->claim, sizeof(ret->claim), "%s/paled.lock", state);
    snprintf(ret->state, sizeof(ret->state), "%s", state);
    snprintf(ret->deeds, sizeof(ret->deeds), "%s/paled.deeds", state);
    snprintf(ret->log, sizeof(ret->log), "%s/paled.log", state);
    snprintf(ret->registry, sizeof(ret->registry), "%s/registry.db", state);
    return 0;
}

/* Whoever made the socket, a steward or systemd, must still live: without it paled is about to end, and takes its clients with it. */
static bool is_orphan(int fd)
{
    struct ucred maker;
    socklen_t n = sizeof(maker);
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &maker, &n) == 0 && maker.pid > 0 && kill(maker.pid, 0) < 0 && errno == ESRCH;
}

/* 1 connected, 0 nobody there, or an error. */
static int try_connect(const char *path, int *ret_fd, struct pale_err *e)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    struct stat st;
    if (lstat(path, &st) < 0)
        return errno == ENOENT ? 0 : err_os(e, "look at %s", path);
    if (!S_ISSOCK(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077))
        return err_set(e, PALE_DENIED, "%s is no socket of yours alone; remove it", path);
    memcpy(sa.sun_path, path, strlen(path) + 1);
    own_fd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
        return errno == ENOENT || errno == ECONNREFUSED ? 0 : err_os(e, "connect to %s", path);
    if (is_orphan(fd))
        return 0;
    *ret_fd = take_fd(&fd);
    return 1;
}

/* --- who serves --- */

/* What stands in a lock file whose lock somebody holds. */
struct holder {
    pid_t pid;                   /* 0: nobody holds it */
    char serves[PATH_BYTES_MAX]; /* the second line: a state folder, or a socket */
};

/* Whoever wrote the file holds its lock, else it is from a dead one. */
static int read_holder(const char *path, struct holder *ret, struct pale_err *e)
{
    char text[PATH_BYTES_MAX + 32] = "";
    uint64_t pid = 0;
    *ret = (struct holder){0};
    own_fd fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : err_os(e, "open %s", path);
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return 0;
    ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
    char *second = n > 0 ? memchr(text, '\n', (size_t)n) : NULL, *end = second ? strchr(second + 1, '\n') : NULL;
    if (!end)
        return err_set(e, PALE_BUSY, "a daemon is just starting or ending");
    *second++ = *end = 0;
    if (!number_u64(text, INT32_MAX, &pid) || pid < 2)
        return err_set(e, PALE_BUSY, "a daemon is just starting or ending");
    ret->pid = (pid_t)pid;
    snprintf(ret->serves, sizeof(ret->serves), "%s", second);
    return 0;
}

int daemon_state(const char *dir, char ret[DAEMON_STATE_MAX], struct pale_err *e)
{
    struct stat st;
    if (stat(dir, &st) < 0)
        return err_os(e, "look at %s", dir);
    snprintf(ret, DAEMON_STATE_MAX, "%llu:%llu", (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
    return 0;
}

/* A daemon of another state folder has other boxes, tokens and answers. */
static int refuse_other(const struct daemon_paths *p, struct pale_err *e)
{
    struct holder h;
    char ours[DAEMON_STATE_MAX], theirs[DAEMON_STATE_MAX];
    if (weak_word("own-places") || read_holder(p->lock, &h, NULL) < 0 || h.pid == 0)
        return 0;
    int r = daemon_state(p->state, ours, e);
    if (r < 0 || (daemon_state(h.serves, theirs, NULL) == 0 && strcmp(ours, theirs) == 0))
        return r;
    return err_set(
        e, PALE_CONFLICT,
        "the daemon on %s (pid %d) serves the state folder %s, and yours is %s; set XDG_RUNTIME_DIR to another folder for one of "
        "the two, or HOME and XDG_STATE_HOME as they were when it was started",
        p->socket, (int)h.pid, h.serves, p->state);
}

static int lock_file(const char *path, const char *serves, int *ret_fd, struct pale_err *e)
{
    own_fd fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_os(e, "open %s", path);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK ? 1 : err_os(e, "lock %s", path);
    if (ftruncate(fd, 0) < 0 || dprintf(fd, "%d\n%s\n", (int)getpid(), serves) < 0)
        return err_os(e, "write %s", path);
    *ret_fd = take_fd(&fd);
    return 0;
}

int daemon_lock(const struct daemon_paths *p, int *ret_lock, int *ret_claim, struct pale_err *e)
{
    struct holder h;
    int r = lock_file(p->claim, p->socket, ret_claim, e);
    if (r > 0 && read_holder(p->claim, &h, NULL) == 0 && h.pid)
        return err_set(e, PALE_BUSY, "another daemon (pid %d) serves the state folder %s already, on %s", (int)h.pid, p->state, h.serves);
    if (r == 0)
        r = lock_file(p->lock, p->state, ret_lock, e);
    if (r <= 0)
        return r;
    r = refuse_other(p, e);
    return r < 0 ? r : err_set(e, PALE_BUSY, "another daemon serves already");
}

static int start(unsigned port, struct pale_err *e)
{
    char number[16];
    snprintf(number, sizeof(number), "%u", port);
    char *argv[] = {(char *)"pale-steward", (char *)"starter", port ? (char *)"port" : NULL, number, NULL};
    return reach_program("pale-steward", argv, e);
}

/* The daemon of this state folder, where it says that it listens; else what is at the socket of the runtime folder. */
static int find(const struct daemon_paths *p, int *ret_fd, struct pale_err *e)
{
    struct holder h;
    int r = read_holder(p->claim, &h, NULL);
    if (r == 0 && h.pid && h.serves[0] && (r = try_connect(h.serves, ret_fd, e)) != 0)
        return r;
    r = refuse_other(p, e);
    return r < 0 ? r : try_connect(p->socket, ret_fd, e);
}

int daemon_connect(const struct daemon_paths *p, bool may_start, unsigned port, int *ret_fd, struct pale_err *e)
{
    int64_t until = clock_ms() + START_WAIT_MS;
    for (;;) {
        int r = find(p, ret_fd, e);
        if (r != 0)
            return r < 0 ? r : 0;
        if (!may_start)
            return err_set(e, PALE_NOT_FOUND, "the daemon does not run; `pale serve` starts it");
        r = start(port, e);
        /* Somebody else was faster: its socket is there in a moment. */
        if (r < 0 && e->code != PALE_BUSY)
            return err_prefix(e, "start the daemon");
        if (r < 0 && clock_ms() > until)
            return err_set(e, PALE_BUSY, "a daemon has the lock %s and does not answer; `pale serve --stop` ends it", p->claim);
        if (r < 0)
            usleep(PAUSE_US);
    }
}

int daemon_pid(const struct daemon_paths *p, pid_t *ret, struct pale_err *e)
{
    struct holder h;
    int r = read_holder(p->claim, &h, e);
    *ret = h.pid;
    return r;
}

int daemon_stop(const struct daemon_paths *p, struct pale_err *e)
{
    pid_t pid = 0, again = 0;
    int r = daemon_pid(p, &pid, e);
    if (r < 0 || pid == 0)
        return r < 0 ? r : refuse_other(p, e);
    own_fd process = (int)syscall(SYS_pidfd_open, pid, 0);
    /* The number may have been given to another since we read it; not if it still stands there now that we hold the process. */
    if (process < 0 || (r = daemon_pid(p, &again, e)) < 0 || again != pid)
        return r < 0 ? r : 0;
    if (syscall(SYS_pidfd_send_signal, process, SIGTERM, NULL, 0) < 0)
        return err_os(e, "end the daemon (pid %d)", (int)pid);
    /* This one; whoever needs a daemon may have started the next before we look. */
    struct pollfd ended = {.fd = process, .events = POLLIN};
    for (int64_t left, until = clock_ms() + STOP_WAIT_MS; poll(&ended, 1, 0) == 0;)
        if ((left = until - clock_ms()) <= 0 || (poll(&ended, 1, (int)left) < 0 && errno != EINTR))
            return err_set(e, PALE_TIMEOUT, "the daemon (pid %d) did not end within %d s", (int)pid, STOP_WAIT_MS / 1000);
    return 0;
}
