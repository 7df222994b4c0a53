/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the keeper's side of pale-gateway, the way out of a box that has a network.
 *
 * How it works: the gateway is started before the wall, which hands it the sockets of the box's network namespace. It gets the policy from
 * us each time it begins to serve, and nothing passes before. What it allows and refuses is written to the audit here; a connection is made
 * when that is done. Its texts come from a process that reads hostile bytes: they are shown quoted and decide nothing. When it is gone for
 * good the box lives on without a network: what it had held is closed. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/handing.h"
#include "base/own.h"
#include "base/quote.h"
#include "confine/kernel.h"
#include "confine/weaken.h"
#include "init/probe.h"
#include "keeper/keeper.h"

#define READY_MS 10000
#define MESSAGES_PER_TURN 64
#define PORT_MS 1000

bool wayout_is_needed(const struct keeper *k)
{
    return (k->policy.network == NETWORK_FILTERED || k->policy.network == NETWORK_OPEN) && !is_weak(k->weaken, WEAKEN_NETNS);
}

static int make_meters(struct wayout *w, int *ret_fd, struct pale_err *e)
{
    own_fd fd = memfd_create("pale-meters", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, sizeof(*w->meters)) < 0)
        return err_os(e, "share the meters with pale-gateway");
    void *p = mmap(NULL, sizeof(*w->meters), PROT_READ, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        return err_os(e, "share the meters with pale-gateway");
    w->meters = p;
    *ret_fd = take_fd(&fd);
    return 0;
}

/* In a child that shares our memory: only system calls. */
static void __attribute__((noreturn)) become_gateway(const char *program, int fds[GATE_FDS])
{
    char *argv[] = {(char *)"pale-gateway", NULL};
    for (int i = GATE_TALK_FD; i < GATE_FDS; i++)
        if ((fds[i] = fcntl(fds[i], F_DUPFD, GATE_FDS)) < 0)
            _exit(127);
    for (int i = GATE_TALK_FD; i < GATE_FDS; i++)
        if (dup2(fds[i], i) < 0)
            _exit(127);
    k_close_range(GATE_FDS, ~0u, 0);
    execve(program, argv, weaken_envp());
    _exit(127);
}

static int spawn(struct wayout *w, const int fds[GATE_FDS], struct pale_err *e)
{
    char program[PATH_BYTES_MAX];
    int mine[GATE_FDS];
    int r = place_program("pale-gateway", program, sizeof(program), e);
    if (r < 0)
        return r;
    memcpy(mine, fds, sizeof(mine));
    pid_t pid = vfork();
    if (pid == 0)
        become_gateway(program, mine);
    if (pid < 0)
        return err_os(e, "start %s", program);
    w->pid = pid;
    return 0;
}

/* Who has just ended may still hold the port for a moment. */
static int listen_on(uint16_t port, uint16_t box_port, struct pale_err *e)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    const int on = 1;
    int64_t until = clock_ms() + PORT_MS;
    own_fd fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0)
        return err_os(e, "publish port %u", port);
    while (bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, SOMAXCONN) < 0) {
        if (errno == EADDRINUSE && clock_ms() > until)
            return err_set(e, PALE_EXISTS, "port %u of this host's loopback is taken; publish another: HOSTPORT:%u", port, box_port);
        if (errno != EADDRINUSE)
            return err_os(e, "listen on port %u of this host's loopback; a port from 1024 on is anybody's", port);
        usleep(10000);
    }
    return take_fd(&fd);
}

static void unpublish(struct wayout *w)
{
    while (w->published_count > 0)
        own_close(&w->published[--w->published_count]);
}

static int publish(struct keeper *k, struct pale_err *e)
{
    struct wayout *w = &k->wayout;
    for (size_t i = 0; i < k->policy.publish_count; i++) {
        int fd = listen_on(k->policy.publish[i].host, k->policy.publish[i].box, e);
        if (fd < 0)
            return fd;
        w->published[w->published_count++] = fd;
    }
    return 0;
}

/* --- what we say --- */

static bool say(struct wayout *w, enum gate_type type, uint64_t number, uint32_t code, int fd)
{
    struct gate_message m = {.type = type, .code = code, .number = number};
    return w->source.fd >= 0 && handing_send(w->source.fd, &m, sizeof(m), fd, MSG_DONTWAIT) == (ssize_t)sizeof(m);
}

/* Connections whose records are written may be made. Many are told in one message, and what the gateway has no room for waits here: it does
 * not read while it writes to us, so that we must not wait for it. */
static void say_go(struct wayout *w)
{
    while (w->gone < w->owed) {
        uint32_t n = w->owed - w->gone < GATE_NUMBERS_MAX ? w->owed - w->gone : GATE_NUMBERS_MAX;
        struct gate_message m = {.type = GATE_GO, .code = n};
        memcpy(m.numbers, w->go + w->gone, n * sizeof(m.numbers[0]));
        if (send(w->source.fd, &m, sizeof(m), MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)sizeof(m))
            return;
        w->gone += n;
    }
    w->gone = w->owed = 0;
}

static void say_port(struct wayout *w, const struct policy_publish *p, int fd)
{
    struct gate_message m = {.type = GATE_PUBLISH, .number = p->host, .port = p->box};
    (void)!handing_send(w->source.fd, &m, sizeof(m), fd, MSG_DONTWAIT);
}

static void say_files(struct wayout *w)
{
    static const struct {
        enum gate_type type;
        const char *path;
    } rows[] = {{GATE_RESOLV, "/etc/resolv.conf"}, {GATE_HOSTS, "/etc/hosts"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        own_fd fd = open(rows[i].path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (fd >= 0)
            say(w, rows[i].type, 0, 0, fd);
    }
}

static int say_policy(struct keeper *k, struct pale_err *e)
{
    own_buf text = {0};
    own_fd fd = memfd_create("pale-policy", MFD_CLOEXEC);
    buf_init(&text, POLICY_TEXT_MAX);
    policy_write(&k->policy, &text);
    if (fd < 0 || text.failed || !fd_write_full(fd, text.data, text.len) || !say(&k->wayout, GATE_POLICY, 0, 0, fd))
        return err_set(e, PALE_GONE, "the box's gateway cannot be told its policy");
    return 0;
}

void wayout_verdict(struct keeper *k, uint64_t number, enum gate_verdict v)
{
    say(&k->wayout, GATE_VERDICT, number, (uint32_t)v, -1);
}

int wayout_answers(struct keeper *k, const struct gate_answer *a, size_t n, struct pale_err *e)
{
    own_fd fd = n ? memfd_create("pale-answers", MFD_CLOEXEC) : -1;
    if (!wayout_is_needed(k) || k->wayout.source.fd < 0)
        return 0;
    if ((n && (fd < 0 || !fd_write_full(fd, a, n * sizeof(*a)))) || !say(&k->wayout, GATE_ANSWERS, n, 0, fd))
        return err_set(e, PALE_GONE, "the box's gateway cannot be told what the operator has answered");
    return 0;
}

/* All that it has to know before anything passes, in this order. */
static int say_all(struct keeper *k, struct pale_err *e)
{
    struct wayout *w = &k->wayout;
    bool cut = w->cut && !is_weak(k->weaken, WEAKEN_GATE_CUT);
    if (cut && !say(w, GATE_CUT, 0, 1, -1))
        return err_set(e, PALE_GONE, "the box's gateway cannot be told that the box is cut off");
    int r = say_policy(k, e);
    for (size_t i = 0; r == 0 && i < w->published_count; i++)
        say_port(w, &k->policy.publish[i], w->published[i]);
    return r;
}

int wayout_start(struct keeper *k, int *ret_hand, struct pale_err *e)
{
    struct wayout *w = &k->wayout;
    int talk[2], hand[2];
    own_fd meters = -1;
    int r = question_begin(k, e);
    if (r == 0)
        r = publish(k, e);
    if (r == 0)
        r = make_meters(w, &meters, e);
    if (r < 0)
        return r;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, talk) < 0)
        return err_os(e, "make a socket pair");
    own_fd theirs = talk[1];
    w->source.fd = talk[0];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, hand) < 0)
        return err_os(e, "make a socket pair");
    own_fd taken = hand[1], given = hand[0];
    const int fds[GATE_FDS] = {[GATE_TALK_FD] = theirs, [GATE_HAND_FD] = taken, [GATE_METER_FD] = meters};
    if ((r = spawn(w, fds, e)) < 0 || (r = say_all(k, e)) < 0)
        return r;
    *ret_hand = take_fd(&given);
    return 0;
}

/* One that cannot be told what holds must not go on by what held. */
static int lose(struct keeper *k, struct pale_err *e)
{
    struct wayout *w = &k->wayout;
    keeper_note(k, "net.lost", "the gateway did not take what it was told");
    question_forget(k);
    if (w->source.ready)
        loop_remove(&k->loop, &w->source);
    own_close(&w->source.fd);
    wayout_end(k);
    return err_set(e, PALE_GONE, "the box's gateway does not answer; the box has no network until its next start");
}

int wayout_cut(struct keeper *k, struct pale_err *e)
{
    bool cut = k->wayout.cut && !is_weak(k->weaken, WEAKEN_GATE_CUT);
    return k->wayout.source.fd < 0 || say(&k->wayout, GATE_CUT, 0, cut, -1) ? 0 : lose(k, e);
}

int wayout_judge(struct keeper *k, struct pale_err *e)
{
    return k->wayout.source.fd < 0 || say_policy(k, e) == 0 ? 0 : lose(k, e);
}

/* --- what it says --- */

static const char *kind_name(uint32_t kind)
{
    static const char *const names[GATE_KINDS] = {
        [GATE_TCP] = "tcp", [GATE_NAME] = "name", [GATE_UDP] = "udp", [GATE_OTHER] = "other", [GATE_IN] = "in"};
    return kind < GATE_KINDS && names[kind] ? names[kind] : "other";
}

uint64_t wayout_job(const struct keeper *k)
{
    const struct kjob *one = NULL;
    size_t n = 0;
    for (const struct kjob *at = k->jobs; at; at = at->next)
        if (at->state == JOB_RUNNING) {
            one = at;
            n++;
        }
    return n == 1 ? one->id : 0;
}

static void add_text(struct json *j, const char *key, const char *text, size_t cap)
{
    char shown[4 * GATE_TEXT_MAX];
    size_t n = strnlen(text, cap);
    if (n)
        json_text(j, key, quote_into(shown, sizeof(shown), text, n));
}

static int write_audit(struct keeper *k, const struct gate_message *m, const char *event, struct pale_err *e)
{
    struct json *j = audit_begin(&k->audit, event);
    char address[ADDRESS_TEXT_MAX];
    if (m->type != GATE_FLOOD) {
        json_text(j, "kind", kind_name(m->kind));
        add_text(j, "host", m->name, sizeof(m->name));
        if (m->address.family == ADDRESS_V4 || m->address.family == ADDRESS_V6)
            json_text(j, "address", address_text(&m->address, address));
        if (m->port)
            json_u64(j, "port", m->port);
        add_text(j, "rule", m->rule, sizeof(m->rule));
        add_text(j, "reason", m->text, sizeof(m->text));
    } else {
        json_u64(j, "refused", m->number);
    }
    if (m->kind != GATE_IN && (m->type == GATE_ALLOW || m->type == GATE_DENY) && wayout_job(k))
        json_u64(j, "job", wayout_job(k));
    if (m->type == GATE_ALLOW || m->type == GATE_END)
        json_u64(j, "flow", m->number);
    if (m->type == GATE_END) {
        json_u64(j, "in", m->in);
        json_u64(j, "out", m->out);
    }
    return audit_commit(&k->audit, e);
}

static void on_hello(struct keeper *k, const struct gate_message *m)
{
    struct pale_err e = {0};
    if (m->number > 0) {
        k->wayout.gone = k->wayout.owed = 0; /* of connections that ended with the one before */
        struct json *j = audit_begin(&k->audit, "net.restarted");
        json_u64(j, "times", m->number);
        (void)!audit_commit(&k->audit, NULL);
    }
    question_forget(k); /* who waited is gone */
    if (question_reread(k, &e) < 0)
        keeper_note(k, "net.answers", e.text);
    /* The first has had its policy since it was started. */
    if (m->number > 0 && say_all(k, &e) < 0)
        keeper_note(k, "net.lost", e.text);
}

/* Is it what our own prober was told to try? The receipt tells of that; no command of the box's has done it. */
static bool is_probe(struct keeper *k, const struct gate_message *m)
{
    static const unsigned char nobody[4] = PROBE_NOBODY;
    bool is = k->wayout.probes_seen < k->wayout.probes && m->kind == GATE_TCP && m->port == PROBE_NOBODY_PORT && !m->name[0] &&
              m->address.family == ADDRESS_V4 && memcmp(m->address.byte, nobody, sizeof(nobody)) == 0;
    k->wayout.probes_seen += is;
    return is;
}

static void on_message(struct keeper *k, const struct gate_message *m)
{
    struct pale_err e = {0};
    switch (m->type) {
    case GATE_HELLO:
        on_hello(k, m);
        break;
    case GATE_WANT_FILES:
        say_files(&k->wayout);
        break;
    case GATE_ALLOW:
        /* Not without its record. */
        if (write_audit(k, m, "net.allow", &e) == 0 && k->wayout.owed < GATE_FLOWS_MAX)
            k->wayout.go[k->wayout.owed++] = m->number;
        break;
    case GATE_DENY:
        if (is_probe(k, m))
            break;
        (void)!write_audit(k, m, "net.deny", NULL);
        break;
    case GATE_END:
        (void)!write_audit(k, m, "net.end", NULL);
        break;
    case GATE_FLOOD:
        (void)!write_audit(k, m, "net.flood", NULL);
        break;
    case GATE_ASK:
        question_ask(k, m);
        break;
    case GATE_TAKE_BACK:
        question_take_back(k, m->number);
        break;
    default:
        break;
    }
}

/* One message, if there is one. What it is, 0: none, or a negative code if the gateway is gone or has failed. */
static int take(struct keeper *k, struct pale_err *e)
{
    struct gate_message m;
    ssize_t n = recv(k->wayout.source.fd, &m, sizeof(m), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n != (ssize_t)sizeof(m))
        return err_set(e, PALE_GONE, "the box's gateway died");
    if (m.type == GATE_ERROR) {
        char shown[4 * GATE_TEXT_MAX];
        quote_into(shown, sizeof(shown), m.text, strnlen(m.text, sizeof(m.text)));
        return err_set(e, m.code > PALE_OK && m.code < PALE_CODE_COUNT ? (enum pale_code)m.code : PALE_INTERNAL, "%s", shown);
    }
    on_message(k, &m);
    if (m.type == GATE_ALLOW || m.type == GATE_DENY || m.type == GATE_END || m.type == GATE_FLOOD)
        tally_touch(k);
    return (int)m.type;
}

static void on_ready(struct loop_source *s, uint32_t events)
{
    struct keeper *k = (struct keeper *)((char *)s - offsetof(struct keeper, wayout.source));
    struct pale_err e = {0};
    int r = events & ~(uint32_t)EPOLLOUT ? 1 : 0;
    for (int i = 0; r > 0 && i < MESSAGES_PER_TURN; i++)
        r = take(k, &e);
    say_go(&k->wayout);
    if (r >= 0) {
        loop_want(&k->loop, s, EPOLLIN | (k->wayout.owed ? EPOLLOUT : 0));
        return;
    }
    keeper_note(k, "net.lost", e.text);
    unpublish(&k->wayout);
    question_forget(k);
    loop_remove(&k->loop, s);
    own_close(&s->fd);
}

int wayout_await(struct keeper *k, struct pale_err *e)
{
    struct wayout *w = &k->wayout;
    int64_t until = clock_ms() + READY_MS;
    if (w->source.fd < 0)
        return 0;
    for (int r = 0; r != GATE_READY;) {
        struct pollfd p = {.fd = w->source.fd, .events = POLLIN};
        int64_t left = until - clock_ms();
        if (left < 0 || poll(&p, 1, (int)left) == 0)
            return err_set(e, PALE_TIMEOUT, "the box's gateway was not ready within %d s", READY_MS / 1000);
        if ((r = take(k, e)) < 0)
            return err_prefix(e, "the box's network");
        if (w->source.fd < 0)
            return err_set(e, PALE_GONE, "the box's gateway does not answer");
    }
    w->source.ready = on_ready;
    return loop_add(&k->loop, &w->source, EPOLLIN, e);
}

void wayout_end(struct keeper *k)
{
    struct wayout *w = &k->wayout;
    struct pale_err e;
    if (w->source.fd >= 0 && w->source.ready)
        loop_remove(&k->loop, &w->source);
    /* What it has said before the end is written down. */
    while (w->source.fd >= 0 && take(k, &e) > 0)
        ;
    own_close(&w->source.fd);
    unpublish(w);
    if (w->pid > 0) {
        kill(w->pid, SIGKILL);
        while (waitpid(w->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    w->pid = 0;
}
