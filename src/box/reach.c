/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the connection of a client to a keeper. */
#include "box/reach.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/handing.h"
#include "base/limits.h"
#include "base/path.h"
#include "box/identity.h"
#include "confine/cgroup.h"
#include "wire/message.h"

#define START_TRIES 200
#define START_PAUSE_US 10000
#define IN_MAX (FRAME_HEAD + FRAME_PAYLOAD_MAX + 65536)

extern char **environ;

void reach_init(struct reach *r)
{
    *r = (struct reach){.fd = -1, .caller = "local", .home_fd = -1};
    buf_init_lent(&r->in, IN_MAX, r->first, sizeof(r->first));
}

void reach_close(struct reach *r)
{
    own_close(&r->fd);
    /* It has heard that it is not needed, and is our child. Its number is nobody's afterwards. */
    while (r->wants_disk && r->starting > 0 && waitpid(r->starting, NULL, 0) < 0 && errno == EINTR)
        ;
    r->waits = r->wants_list = r->wants_disk = false;
    r->starting = 0;
    buf_done(&r->in);
}

static int try_connect(const char *path)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    size_t n = strlen(path);
    if (n >= sizeof(sa.sun_path))
        return errno = ENAMETOOLONG, -1;
    memcpy(sa.sun_path, path, n + 1);
    own_fd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
        return -1;
    return take_fd(&fd);
}

/* Its keeper may have been started with another runtime folder: by cron, by su, over ssh. The state folder says where it listens. */
static int connect_keeper(const struct place *p)
{
    char link[PATH_BYTES_MAX], path[PATH_BYTES_MAX] = "";
    int fd = try_connect(p->socket);
    if (fd >= 0 || (errno != ENOENT && errno != ECONNREFUSED) || !path_join(link, sizeof(link), p->state, REACH_SOCKET))
        return fd;
    int os = errno;
    ssize_t n = readlink(link, path, sizeof(path) - 1);
    if (n > 0 && strcmp(path, p->socket) != 0)
        return try_connect(path);
    errno = os;
    return -1;
}

/* In the child between vfork and exec: descriptor 3, perhaps 4, and nothing else of ours; its own session, so that no key of our terminal
 * reaches it. */
static pid_t spawn(const char *program, char *const argv[], int socket_fd, int null_fd, int home_fd)
{
    pid_t pid = vfork();
    if (pid == 0) {
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL); /* what we put off is no business of its */
        setsid();
        for (int i = 0; i < 3; i++)
            if (dup2(null_fd, i) < 0)
                _exit(127);
        if (dup2(socket_fd, 3) < 0 || (home_fd >= 0 && dup2(home_fd, 4) < 0) || syscall(SYS_close_range, home_fd >= 0 ? 5 : 4, ~0u, 0) < 0)
            _exit(127);
        execve(program, argv, environ);
        _exit(127);
    }
    return pid;
}

/* first is put on the wire before the keeper starts, so that it need not wait for us. */
static int start_program(struct reach *r, const char *name, char *const argv[], const struct buf *first, int home_fd, struct pale_err *e)
{
    char program[PATH_BYTES_MAX];
    int pair[2];
    int res = place_program(name, program, sizeof(program), e);
    if (res < 0)
        return res;
    own_fd null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return err_os(e, "make a socket pair");
    own_fd theirs = pair[1];
    r->fd = pair[0];
    /* A policy too large for the socket's buffer goes out afterwards. */
    bool early = first && first->len < 65536;
    if (early && (res = reach_send(r, ASK_POLICY, first->data, first->len, e)) < 0)
        return res;
    r->keeper = spawn(program, argv, theirs, null, home_fd);
    if (r->keeper < 0)
        return err_os(e, "start %s", program);
    return first && !early ? reach_send(r, ASK_POLICY, first->data, first->len, e) : 0;
}

/* Ends one that could not tell us it was ready, and waits: else it might go on making what the caller takes away. */
static void end_keeper(pid_t pid)
{
    if (kill(pid, SIGTERM) == 0)
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
}

static int start_keeper(struct reach *r, const char *mode, const struct place *p, int home_fd, struct pale_err *e)
{
    char *argv[] = {(char *)"pale-keeper",
                    (char *)mode,
                    (char *)p->name,
                    (char *)p->id,
                    (char *)p->data,
                    (char *)p->state,
                    (char *)p->socket,
                    (char *)r->caller,
                    home_fd >= 0 ? (char *)"home" : NULL,
                    NULL};
    int res = start_program(r, "pale-keeper", argv, NULL, home_fd, e);
    r->starting = r->keeper;
    r->keeper = 0; /* it outlives us */
    return res;
}

int reach_start(struct reach *r, const struct place *p, int home_fd, struct pale_err *e)
{
    return start_keeper(r, "box", p, home_fd, e);
}

int reach_start_next(struct reach *r, const struct place *p, int home_fd, struct pale_err *e)
{
    int res = start_keeper(r, "next", p, home_fd, e);
    r->waits = r->wants_list = r->wants_disk = res == 0;
    return res;
}

int reach_tell_list(struct reach *r, const void *list, size_t n, struct pale_err *e)
{
    return reach_send(r, ASK_LIST, list, n, e);
}

int reach_let_go(struct reach *r, int lock_fd, struct pale_err *e)
{
    uint8_t head[FRAME_HEAD];
    frame_put_head(head, ASK_GO, 0, 0);
    if (handing_send(r->fd, head, sizeof(head), lock_fd, 0) != (ssize_t)sizeof(head))
        return err_os(e, "let the next keeper go");
    r->waits = false;
    return 0;
}

int reach_tell_saved(struct reach *r, struct pale_err *e)
{
    int res = reach_send(r, ASK_SAVED, NULL, 0, e);
    r->wants_list = res < 0;
    return res;
}

int reach_tell_kept(struct reach *r, struct pale_err *e)
{
    int res = reach_send(r, ASK_KEPT, NULL, 0, e);
    r->wants_disk = res < 0;
    return res;
}

int reach_started(struct reach *r, const struct place *p, struct pale_err *e)
{
    struct frame f;
    int res = reach_receive(r, &f, e);
    if (res == 0 && f.type != TELL_DONE)
        res = err_set(e, PALE_PROTOCOL, "the keeper of %s does not speak our language; was pale upgraded? `pale stop %s` and try again",
                      p->name, p->name);
    if (res < 0)
        end_keeper(r->starting);
    r->starting = 0;
    return res;
}

int reach_box(struct reach *r, const struct place *p, bool start, struct pale_err *e)
{
    for (int tries = 0; tries < START_TRIES; tries++) {
        r->fd = connect_keeper(p);
        if (r->fd >= 0) {
            memcpy(r->owed, p->id, sizeof(r->owed));
            r->owes_id = true;
            return 0;
        }
        if (errno != ENOENT && errno != ECONNREFUSED)
            return err_os(e, "reach the keeper of %s", p->name);
        if (!start)
            return err_set(e, PALE_NOT_FOUND, "box %s is not running", p->name);
        int res = reach_start(r, p, r->home_fd, e);
        if (res == 0)
            res = reach_started(r, p, e);
        if (res == 0)
            return 0;
        own_close(&r->fd);
        r->owes_id = false;
        buf_clear(&r->in);
        r->taken = 0;
        /* Somebody else is starting or stopping it this very moment. */
        if (e->code != PALE_BUSY)
            return res;
        usleep(START_PAUSE_US);
    }
    return err_set(e, PALE_BUSY, "the keeper of %s neither answers nor ends", p->name);
}

int reach_program(const char *name, char *const argv[], struct pale_err *e)
{
    own_reach r = {.fd = -1};
    struct frame f;
    reach_init(&r);
    int res = start_program(&r, name, argv, NULL, -1, e);
    if (res == 0 && (res = reach_receive(&r, &f, e)) == 0 && f.type != TELL_DONE)
        res = err_set(e, PALE_PROTOCOL, "%s does not speak our language; is pale installed whole?", name);
    r.keeper = 0;
    return res;
}

/* Above the descriptors that spawn gives away. */
#define HOME_ABOVE 10

int reach_receive_home(struct reach *r, int *ret_fd, struct pale_err *e)
{
    own_fd low = -1;
    struct frame f;
    ssize_t n = handing_receive(r->fd, r->first, sizeof(r->first), &low, 0);
    *ret_fd = -1;
    if (n < 0 && errno != ECONNRESET)
        return err_os(e, "talk to the keeper");
    r->in.len = n < 0 ? 0 : (size_t)n;
    int res = reach_receive(r, &f, e);
    if (res == 0 && low >= 0)
        *ret_fd = fcntl(low, F_DUPFD_CLOEXEC, HOME_ABOVE);
    return res;
}

int reach_home(int *ret_fd, struct pale_err *e)
{
    char *argv[] = {(char *)"pale-keeper", (char *)"home", NULL};
    own_reach r = {.fd = -1};
    reach_init(&r);
    int res = start_program(&r, "pale-keeper", argv, NULL, -1, e);
    if (res == 0)
        res = reach_receive_home(&r, ret_fd, e);
    reach_end(&r);
    return res;
}

int reach_once(struct reach *r, const struct policy *policy, struct pale_err *e)
{
    char *id = r->id, name[32];
    int res = identity_mint(id, e);
    if (res < 0)
        return res;
    snprintf(name, sizeof(name), "run-%.8s", id);
    char *argv[] = {(char *)"pale-keeper", (char *)"once", name, id, NULL};
    own_buf text = {0};
    buf_init(&text, POLICY_TEXT_MAX);
    policy_write(policy, &text);
    if (text.failed)
        return err_set(e, PALE_LIMIT, "the policy is longer than %u bytes", POLICY_TEXT_MAX);
    return start_program(r, "pale-keeper", argv, &text, -1, e);
}

/* The keeper hung up on us: what it said before tells why. */
static int hung_up(struct reach *r, struct pale_err *e)
{
    struct frame f;
    int os = errno, res;
    if (os != EPIPE && os != ECONNRESET)
        return err_os(e, "talk to the keeper");
    while ((res = reach_receive(r, &f, e)) == 0)
        ;
    return res;
}

/* Head and payload in one call: the keeper wakes once for them. */
static bool send_parts(int fd, struct iovec *part, size_t count)
{
    struct msghdr m = {.msg_iov = part, .msg_iovlen = count};
    size_t left = 0;
    for (size_t i = 0; i < count; i++)
        left += part[i].iov_len;
    while (left > 0) {
        ssize_t w = sendmsg(fd, &m, MSG_NOSIGNAL);
        if (w < 0 && errno == EINTR)
            continue;
        if (w < 0)
            return false;
        left -= (size_t)w;
        for (size_t i = 0; i < count; i++) {
            size_t of = (size_t)w < part[i].iov_len ? (size_t)w : part[i].iov_len;
            part[i].iov_base = (char *)part[i].iov_base + of;
            part[i].iov_len -= of;
            w -= (ssize_t)of;
        }
    }
    return true;
}

static bool send_frame(struct reach *r, uint8_t type, const void *p, size_t n)
{
    uint8_t hello[FRAME_HEAD], head[FRAME_HEAD];
    frame_put_head(hello, ASK_HELLO, 0, sizeof(r->owed));
    frame_put_head(head, type, 0, (uint32_t)n);
    struct iovec part[4] = {{.iov_base = hello, .iov_len = r->owes_id ? sizeof(hello) : 0},
                            {.iov_base = r->owed, .iov_len = r->owes_id ? sizeof(r->owed) : 0},
                            {.iov_base = head, .iov_len = sizeof(head)},
                            {.iov_base = (void *)p, .iov_len = n}};
    bool sent = send_parts(r->fd, part, 4);
    r->owes_id = r->owes_id && !sent;
    return sent;
}

int reach_send(struct reach *r, uint8_t type, const void *p, size_t n, struct pale_err *e)
{
    return send_frame(r, type, p, n) ? 0 : hung_up(r, e);
}

bool reach_tell(struct reach *r, uint8_t type, const void *p, size_t n)
{
    if (send_frame(r, type, p, n))
        return true;
    /* Perhaps a part of it has gone. The keeper must not wait for the rest, nor a command for the end of its input. */
    shutdown(r->fd, SHUT_WR);
    return false;
}

int reach_next(struct reach *r, struct frame *ret)
{
    size_t used = 0;
    if (r->taken == r->in.len)
        r->taken = r->in.len = 0;
    int got = frame_parse(r->in.data + r->taken, r->in.len - r->taken, ret, &used);
    if (got == 1)
        r->taken += used;
    return got;
}

int reach_fill(struct reach *r)
{
    /* A keeper that sends much fills what is there; then it gets more room. */
    bool more = !r->in.lent || r->in.len == r->in.cap;
    buf_consume(&r->in, r->taken);
    r->taken = 0;
    if (more && !buf_reserve(&r->in, r->in.cap < 65536 ? 65536 : 16384))
        return errno = EMSGSIZE, -1;
    ssize_t n;
    do
        n = recv(r->fd, r->in.data + r->in.len, r->in.cap - r->in.len, 0);
    while (n < 0 && errno == EINTR);
    if (n > 0)
        r->in.len += (size_t)n;
    return n > 0 ? 1 : (int)n;
}

int reach_receive(struct reach *r, struct frame *ret, struct pale_err *e)
{
    int got;
    while ((got = reach_next(r, ret)) == 0) {
        int n = reach_fill(r);
        if (n < 0 && errno == EAGAIN) /* whoever set a time on the socket */
            return err_set(e, PALE_TIMEOUT, "no answer came in time");
        if (n < 0 && errno != ECONNRESET) /* that is the end of one that was killed before it had read our request */
            return err_os(e, "listen to the keeper");
        if (n <= 0)
            return err_set(e, PALE_GONE, "the keeper ended without an answer");
    }
    if (got < 0)
        return err_set(e, PALE_PROTOCOL, "the keeper does not speak our language");
    if (ret->type == TELL_ERROR) {
        struct msg_error m;
        if (!msg_error_parse(ret->data, ret->len, &m) || m.code == 0 || m.code >= PALE_CODE_COUNT)
            return err_set(e, PALE_PROTOCOL, "the keeper sent an error that cannot be read");
        return err_set(e, (enum pale_code)m.code, "%s", m.text);
    }
    return 0;
}

void reach_end(struct reach *r)
{
    /* Nothing more to say: this ends a one-shot box. Then wait until it is really gone. */
    if (r->keeper <= 0)
        return;
    int status = 0;
    shutdown(r->fd, SHUT_WR);
    while (waitpid(r->keeper, &status, 0) < 0 && errno == EINTR)
        ;
    /* One that was killed has left its cgroup, which nobody else would ever look for. */
    if (WIFSIGNALED(status) && r->id[0])
        cgroup_sweep(r->id);
    r->keeper = 0;
}
