/* SPDX-License-Identifier: Apache-2.0 */
/* pale-steward: keeps the daemon alive and does its deeds.
 *
 *     pale-steward [port N] [starter]      with starter, descriptor 3 is told when the daemon serves, or why it does not
 *
 * How it works: paled reads what strangers send and is locked up, so that it can neither start programs nor gain rights; boxes need
 * both. The steward is its parent. It holds the user's one lock, opens the sockets, starts paled on them and starts it again should
 * it die, and for each connection that paled hands it forks a process that does one deed (steward/deed.c). It reads nothing itself but
 * single bytes of paled: 'r' for ready, 'd' with a descriptor for a deed, 'e' with a text for trouble. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <netinet/in.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/handing.h"
#include "base/number.h"
#include "base/own.h"
#include "box/daemon.h"
#include "box/place.h"
#include "box/reach.h"
#include "steward/steward.h"
#include "wire/frame.h"
#include "wire/message.h"

#define STARTER 3
#define BACKLOG 4096
#define LIVED_MS 2000      /* one that served so long did not end at once */
#define PAUSE_DOUBLINGS 9u /* of 10 ms: about five seconds */
#define ASKED_PAUSE_MS 250 /* since the last start, if somebody asks */
#define END_WAIT_MS 5000   /* for paled to finish what it sends */
#define DEEDS_MAX 256      /* at once */
#define LOG_FILE "paled.log"

struct steward {
    int starter;                    /* who waits for us to be ready; -1 */
    int lock, claim, listener, tcp; /* -1: none */
    bool made_socket;               /* else systemd did, and keeps it */
    struct daemon_paths paths;
    unsigned port;
    char program[PATH_BYTES_MAX];
    int link; /* to paled */
    int signals;
    pid_t paled;
    int64_t started_ms;
    unsigned deaths;
    int64_t start_ms; /* when it is to be started again */
    bool ready;       /* it has served once */
    bool serves;      /* this one has said so */
    bool ending, home_tried;
    int home; /* for the ids of boxes */
    size_t deeds;
};

static void say(const char *text)
{
    char stamp[40];
    dprintf(2, "%s steward: %s\n", clock_stamp(stamp, sizeof(stamp)), text);
}

/* --- telling --- */

static void tell_starter(struct steward *s, uint8_t type, const void *p, size_t n)
{
    uint8_t head[FRAME_HEAD];
    if (s->starter < 0)
        return;
    frame_put_head(head, type, 0, (uint32_t)n);
    if (send(s->starter, head, sizeof(head), MSG_NOSIGNAL | MSG_MORE) > 0)
        (void)!send(s->starter, p, n, MSG_NOSIGNAL);
    own_close(&s->starter);
}

/* Nobody finds us any more; those who did are told so by the connection's end. */
static void leave_socket(struct steward *s)
{
    if (s->made_socket)
        unlink(s->paths.socket);
    s->made_socket = false;
    own_close(&s->listener);
    own_close(&s->tcp);
}

/* The socket goes first: whoever is told that there is no daemon must not find one. */
static int give_up(struct steward *s, const struct pale_err *e)
{
    uint8_t mem[2048];
    struct record_writer w;
    struct msg_error m = {.code = e->code, .text = e->text};
    record_start(&w, mem, sizeof(mem));
    msg_error_write(&m, &w);
    say(e->text);
    leave_socket(s);
    tell_starter(s, TELL_ERROR, mem, w.len);
    return 1;
}

/* systemd's way: a datagram to the socket it named. */
static void notify(const char *text)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    size_t n = path ? strlen(path) : 0;
    if (n == 0 || n >= sizeof(sa.sun_path) || (path[0] != '/' && path[0] != '@'))
        return;
    memcpy(sa.sun_path, path, n);
    if (path[0] == '@')
        sa.sun_path[0] = 0;
    own_fd fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0)
        (void)!sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&sa,
                      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n));
}

/* --- stages --- */

/* Needs: nothing. Gives up: the working folder, every descriptor that is not meant for us. */
static int stage_settle(struct steward *s, int argc, char **argv, struct pale_err *e)
{
    const char *fds = getenv("LISTEN_FDS"), *pid = getenv("LISTEN_PID");
    uint64_t v = 0, port = 0;
    bool activated = fds && pid && number_u64(pid, INT32_MAX, &v) && (pid_t)v == getpid() && strcmp(fds, "1") == 0;
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "starter") == 0 && !activated)
            s->starter = STARTER;
        else if (strcmp(argv[i], "port") == 0 && i + 1 < argc && number_u64(argv[i + 1], 65535, &port) && port > 0)
            s->port = (unsigned)port, i++;
        else
            return err_set(e, PALE_BAD_INPUT, "pale-steward is started by pale serve or by systemd");
    s->listener = activated ? STARTER : -1;
    bool uses = activated || s->starter >= 0;
    if (uses)
        (void)fcntl(STARTER, F_SETFD, FD_CLOEXEC);
    (void)syscall(SYS_close_range, uses ? 4 : 3, ~0u, 0);
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDNAMES");
    umask(077);
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
        files.rlim_cur = files.rlim_max < 65536 ? files.rlim_max : 65536;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
    if (chdir("/") < 0)
        return err_os(e, "go to /");
    int r = place_program("paled", s->program, sizeof(s->program), e);
    return r < 0 ? r : daemon_paths(&s->paths, e);
}

/* Needs: the runtime folder and the state folder. Of all who start at once, one gets the locks; they are held until the process ends. */
static int stage_lock(struct steward *s, struct pale_err *e)
{
    return daemon_lock(&s->paths, &s->lock, &s->claim, e);
}

/* Needs: the lock: a socket that is there is a dead daemon's. */
static int stage_sockets(struct steward *s, struct pale_err *e)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    if (s->listener < 0) {
        memcpy(sa.sun_path, s->paths.socket, strlen(s->paths.socket) + 1);
        own_fd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        unlink(s->paths.socket);
        umask(0177);
        int bound = fd < 0 ? -1 : bind(fd, (struct sockaddr *)&sa, sizeof(sa));
        umask(077);
        if (bound < 0 || listen(fd, BACKLOG) < 0)
            return err_os(e, "listen on %s", s->paths.socket);
        s->listener = take_fd(&fd);
        s->made_socket = true;
    }
    if (!fd_set_nonblock(s->listener, true))
        return err_os(e, "prepare the socket");
    if (s->port) {
        struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)s->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        int on = 1;
        own_fd fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 || bind(fd, (struct sockaddr *)&in, sizeof(in)) < 0 ||
            listen(fd, BACKLOG) < 0)
            return err_os(e, "listen on 127.0.0.1:%u", s->port);
        s->tcp = take_fd(&fd);
    }
    return 0;
}

/* Needs: a starter that is not a terminal's. Standard error becomes the log, but for who watches us (foreground, systemd). */
static int stage_log(struct steward *s, struct pale_err *e)
{
    if (s->starter < 0)
        return 0;
    own_fd fd = open(s->paths.log, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || dup2(fd, 2) < 0)
        return err_os(e, "open %s", s->paths.log);
    return 0;
}

static int stage_signals(struct steward *s, struct pale_err *e)
{
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGCHLD);
    sigaddset(&mask, SIGTERM);
    sigaddset(&mask, SIGINT);
    sigaddset(&mask, SIGHUP);
    sigprocmask(SIG_SETMASK, &mask, NULL);
    s->signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
    return s->signals < 0 ? err_os(e, "signalfd") : 0;
}

/* --- the deeds' lock --- */

/* Each deed holds it as long as it runs, whoever ordered it, since before it was begun. */
static int lock_for_deed(const struct steward *s)
{
    own_fd fd = open(s->paths.deeds, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    return fd < 0 || flock(fd, LOCK_SH | LOCK_NB) < 0 ? -1 : take_fd(&fd);
}

/* Not even one that a dead steward began: then a daemon need not wait for what they might still do. */
static bool no_deed_runs(const struct steward *s)
{
    own_fd fd = open(s->paths.deeds, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
}

/* --- paled --- */

/* In the child: descriptors 3 (us), 4 (the socket), 5 (TCP, if any) and nothing else. */
static void become_paled(const struct steward *s, int link, bool alone)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    int from[3] = {link, s->listener, s->tcp};
    for (int i = 0; i < 3; i++) /* out of each other's way first */
        if (from[i] >= 0 && (from[i] = fcntl(from[i], F_DUPFD_CLOEXEC, 10)) < 0)
            _exit(127);
    for (int i = 0; i < 3; i++)
        if (from[i] >= 0 && dup2(from[i], 3 + i) < 0)
            _exit(127);
    (void)syscall(SYS_close_range, s->tcp >= 0 ? 6 : 5, ~0u, 0);
    char port[16];
    snprintf(port, sizeof(port), "%u", s->port);
    char *argv[] = {(char *)"paled", port, alone ? (char *)"alone" : NULL, NULL};
    execv(s->program, argv);
    _exit(127);
}

static int start_paled(struct steward *s, struct pale_err *e)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_os(e, "make a socket pair");
    bool alone = no_deed_runs(s);
    pid_t pid = fork();
    if (pid == 0)
        become_paled(s, pair[1], alone);
    close(pair[1]);
    own_close(&s->link);
    s->link = pair[0];
    s->paled = pid;
    s->started_ms = clock_ms();
    s->serves = false;
    return pid < 0 ? err_os(e, "start %s", s->program) : 0;
}

/* --- deeds --- */

static void begin_deed(struct steward *s, int fd)
{
    if (s->deeds >= DEEDS_MAX)
        return; /* of a paled that has ended: closing the connection says no */
    if (!s->home_tried) {
        s->home_tried = true;
        if (reach_home(&s->home, NULL) < 0)
            s->home = -1;
    }
    own_fd lock = lock_for_deed(s); /* the child's, from here on */
    pid_t pid = lock < 0 ? -1 : fork();
    if (pid > 0)
        s->deeds++;
    if (pid != 0)
        return;
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    own_close(&s->lock);
    own_close(&s->claim);
    own_close(&s->listener);
    own_close(&s->tcp);
    own_close(&s->link);
    own_close(&s->signals);
    deed_serve(fd, s->home);
    _exit(0);
}

/* One message of paled. False once there is nobody to hear. */
static bool hear(struct steward *s)
{
    char text[1024];
    own_fd fd = -1;
    ssize_t n = handing_receive(s->link, text, sizeof(text) - 1, &fd, MSG_DONTWAIT);
    if (n <= 0)
        return n < 0 && errno == EAGAIN;
    text[n] = 0;
    if (text[0] == 'r') {
        s->ready = s->serves = true;
        tell_starter(s, TELL_DONE, NULL, 0);
        notify("READY=1");
    } else if (text[0] == 'd' && fd >= 0)
        begin_deed(s, fd);
    else if (text[0] == 'e') {
        struct pale_err e;
        err_set(&e, PALE_OS, "%.600s", text + 1);
        /* One that has served before is tried again: a full disk has room again some day. */
        if (s->ready)
            say(e.text);
        else
            give_up(s, &e);
    }
    return true;
}

/* --- the loop --- */

/* 0: go on; else the exit status. One that never came to serve is not tried again by itself; once one has served, another is started
 * always, the more slowly the sooner it ends by itself, and at once when somebody asks for it. */
static int paled_ended(struct steward *s, int status)
{
    char text[120];
    struct pale_err e;
    while (hear(s) && poll(&(struct pollfd){.fd = s->link, .events = POLLIN}, 1, 0) > 0)
        ; /* its last words */
    s->paled = -1;
    if (s->ending)
        return 0;
    snprintf(text, sizeof(text), "paled ended with %s %d", WIFSIGNALED(status) ? "signal" : "status",
             WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    say(text);
    bool own_doing = !WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL;
    s->deaths = s->serves && (!own_doing || clock_ms() - s->started_ms > LIVED_MS) ? 0 : s->deaths + 1;
    if (!s->serves && !s->ready) {
        err_set(&e, PALE_GONE, "%s before it served; see %s", text, s->paths.log);
        return give_up(s, &e);
    }
    unsigned doublings = s->deaths < PAUSE_DOUBLINGS ? s->deaths : PAUSE_DOUBLINGS;
    s->start_ms = clock_ms() + (s->deaths ? 10 << doublings : 0);
    return 0;
}

static void deed_ended(struct steward *s, int status)
{
    char text[80];
    s->deeds -= s->deeds > 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return;
    snprintf(text, sizeof(text), "a deed ended with %s %d", WIFSIGNALED(status) ? "signal" : "status",
             WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    say(text);
}

static int take_signals(struct steward *s)
{
    struct signalfd_siginfo info;
    int status, result = 0;
    while (read(s->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
        if (info.ssi_signo != SIGCHLD && !s->ending) {
            s->ending = true;
            notify("STOPPING=1");
            if (s->paled > 0)
                kill(s->paled, SIGTERM);
        }
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
        if (pid == s->paled)
            result = paled_ended(s, status);
        else
            deed_ended(s, status);
    return result;
}

/* A client that waits while none serves is reason enough to start one. */
static void mind_clients(struct steward *s)
{
    struct pollfd asked = {.fd = s->listener, .events = POLLIN};
    int64_t soonest = s->started_ms + ASKED_PAUSE_MS;
    if (s->start_ms > soonest && poll(&asked, 1, 0) > 0)
        s->start_ms = soonest;
}

/* How long to wait for something to happen. */
static int patience(const struct steward *s)
{
    if (s->ending)
        return 100;
    int64_t left = s->paled > 0 ? -1 : s->start_ms - clock_ms();
    return s->paled > 0 ? -1 : left > ASKED_PAUSE_MS ? ASKED_PAUSE_MS : left > 0 ? (int)left : 0;
}

static int run(struct steward *s)
{
    int64_t until = 0;
    struct pale_err e;
    while (!s->ending || s->paled > 0) {
        /* With as many deeds as may be, paled waits in the kernel and says so to its clients. */
        struct pollfd p[2] = {{.fd = s->signals, .events = POLLIN}, {.fd = s->deeds < DEEDS_MAX ? s->link : -1, .events = POLLIN}};
        if (s->ending && until == 0)
            until = clock_ms() + END_WAIT_MS;
        if (s->ending && clock_ms() >= until && s->paled > 0)
            kill(s->paled, SIGKILL);
        if (poll(p, 2, patience(s)) < 0 && errno != EINTR)
            return 1;
        if (p[1].revents && !hear(s))
            own_close(&s->link); /* its end will be told by a signal */
        int r = take_signals(s);
        if (r != 0)
            return r;
        if (s->paled <= 0)
            mind_clients(s);
        if (!s->ending && s->paled <= 0 && clock_ms() >= s->start_ms && start_paled(s, &e) < 0)
            return give_up(s, &e);
    }
    return 0;
}

int main(int argc, char **argv)
{
    static struct steward s = {.starter = -1, .lock = -1, .claim = -1, .listener = -1, .tcp = -1, .link = -1, .home = -1};
    struct pale_err e;
    if (stage_settle(&s, argc, argv, &e) < 0 || stage_lock(&s, &e) < 0 || stage_log(&s, &e) < 0 || stage_sockets(&s, &e) < 0 ||
        stage_signals(&s, &e) < 0 || start_paled(&s, &e) < 0)
        return give_up(&s, &e);
    int status = run(&s);
    leave_socket(&s);
    return status;
}
