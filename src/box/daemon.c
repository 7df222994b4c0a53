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
    snprintf(ret->deeds, sizeof(ret->deeds), "%s/paled.deeds", runtime);
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
static int try_connect(const struct daemon_paths *p, int *ret_fd, struct pale_err *e)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    struct stat st;
    if (lstat(p->socket, &st) < 0)
        return errno == ENOENT ? 0 : err_os(e, "look at %s", p->socket);
    if (!S_ISSOCK(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077))
        return err_set(e, PALE_DENIED, "%s is no socket of yours alone; remove it", p->socket);
    memcpy(sa.sun_path, p->socket, strlen(p->socket) + 1);
    own_fd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
        return errno == ENOENT || errno == ECONNREFUSED ? 0 : err_os(e, "connect to %s", p->socket);
    if (is_orphan(fd))
        return 0;
    *ret_fd = take_fd(&fd);
    return 1;
}

static int start(unsigned port, struct pale_err *e)
{
    char number[16];
    snprintf(number, sizeof(number), "%u", port);
    char *argv[] = {(char *)"pale-steward", (char *)"starter", port ? (char *)"port" : NULL, number, NULL};
    return reach_program("pale-steward", argv, e);
}

int daemon_connect(const struct daemon_paths *p, bool may_start, unsigned port, int *ret_fd, struct pale_err *e)
{
    int64_t until = clock_ms() + START_WAIT_MS;
    for (;;) {
        int r = try_connect(p, ret_fd, e);
        if (r != 0)
            return r < 0 ? r : 0;
        if (!may_start)
            return err_set(e, PALE_NOT_FOUND, "the daemon does not run; `pale serve` starts it");
        r = start(port, e);
        /* Somebody else was faster: its socket is there in a moment. */
        if (r < 0 && e->code != PALE_BUSY)
            return err_prefix(e, "start the daemon");
        if (r < 0 && clock_ms() > until)
            return err_set(e, PALE_BUSY, "a daemon has the lock %s and does not answer; `pale serve --stop` ends it", p->lock);
        if (r < 0)
            usleep(PAUSE_US);
    }
}

/* Who wrote the file holds its lock, else it is from a dead one. */
static int read_pid(const struct daemon_paths *p, int *ret_fd, pid_t *ret, struct pale_err *e)
{
    char text[32] = "";
    uint64_t pid = 0;
    *ret = 0;
    own_fd fd = open(p->lock, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : err_os(e, "open %s", p->lock);
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return 0;
    ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
    if (n > 1 && text[n - 1] == '\n')
        text[n - 1] = 0;
    if (n <= 0 || !number_u64(text, INT32_MAX, &pid) || pid < 2)
        return err_set(e, PALE_BUSY, "a daemon is just starting or ending");
    *ret = (pid_t)pid;
    *ret_fd = take_fd(&fd);
    return 0;
}

int daemon_pid(const struct daemon_paths *p, pid_t *ret, struct pale_err *e)
{
    own_fd fd = -1;
    return read_pid(p, &fd, ret, e);
}

int daemon_stop(const struct daemon_paths *p, struct pale_err *e)
{
    own_fd lock = -1;
    pid_t pid = 0, again = 0;
    int r = read_pid(p, &lock, &pid, e);
    if (r < 0 || pid == 0)
        return r;
    own_fd other = -1, process = (int)syscall(SYS_pidfd_open, pid, 0);
    /* The number may have been given to another since we read it; not if it still stands there now that we hold the process. */
    if (process < 0 || (r = read_pid(p, &other, &again, e)) < 0 || again != pid)
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
