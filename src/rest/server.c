/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the listeners: who is let in, how many, and the end of all of them. */
#include "rest/server.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <netinet/in.h>
#include <netinet/tcp.h>

#include "base/clock.h"
#include "base/own.h"
#include "ops/ops.h"
#include "ops/world.h"
#include "rest/conn.h"

static void listen_again(struct server *s)
{
    s->full = false;
    if (s->local.fd >= 0)
        loop_want(s->loop, &s->local, EPOLLIN);
    if (s->tcp.fd >= 0)
        loop_want(s->loop, &s->tcp, EPOLLIN);
}

/* Whoever comes waits in the kernel: until somebody leaves, or for a moment, if what is short is not ours to count. */
static void stop_listening(struct server *s, struct loop_source *source)
{
    s->full = true;
    loop_want(s->loop, source, 0);
    loop_arm(s->loop, &s->again, clock_ms() + REST_AGAIN_MS);
}

static void on_again(struct loop_timer *t)
{
    listen_again((struct server *)((char *)t - offsetof(struct server, again)));
}

void server_left(struct server *s)
{
    s->world->counts.connections = --s->count;
    if (s->full)
        listen_again(s);
    if (s->draining && s->count == 0)
        s->loop->stop = true;
}

/* Over the unix socket only our own user speaks to us; the folder keeps others out already. */
static bool is_own_user(int fd)
{
    struct ucred who;
    socklen_t n = sizeof(who);
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) == 0 && who.uid == geteuid();
}

static void accept_from(struct server *s, struct loop_source *source, bool local)
{
    /* Who needs no token cannot be kept out by those who have none. */
    if (s->count >= s->most - (local ? 0 : s->most / 8))
        return stop_listening(s, source);
    int fd = accept4(source->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), on = 1;
    if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS))
        return stop_listening(s, source); /* it would be told of the same one again at once */
    if (fd < 0)
        return;
    if (local && !is_own_user(fd)) {
        close(fd);
        return;
    }
    if (!local) {
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    }
    if (conn_add(s, fd, local))
        s->world->counts.connections = ++s->count;
}

static void on_local(struct loop_source *source, uint32_t events)
{
    (void)events;
    accept_from((struct server *)((char *)source - offsetof(struct server, local)), source, true);
}

static void on_tcp(struct loop_source *source, uint32_t events)
{
    (void)events;
    accept_from((struct server *)((char *)source - offsetof(struct server, tcp)), source, false);
}

/* Streams have no end of their own. Commands whose clients are cut off now go on: the next daemon has them. */
static void on_last(struct loop_timer *t)
{
    struct server *s = (struct server *)((char *)t - offsetof(struct server, last));
    s->world->ending = true;
    s->loop->stop = true;
}

/* Each may need a second descriptor, for the keeper of its box. */
static size_t most_conns(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur >= 2 * REST_CONNS_MAX + REST_FDS_ELSE)
        return REST_CONNS_MAX;
    return files.rlim_cur > REST_FDS_ELSE + 32 ? (size_t)(files.rlim_cur - REST_FDS_ELSE) / 2 : 16;
}

static void cut_token(struct world *w, const char *token, const struct call *but)
{
    for (struct conn *c = w->server->conns, *next; c; c = next) {
        next = c->next;
        if (c->call && c->call != but && strcmp(c->call->who.token, token) == 0)
            conn_cut(c);
    }
}

int server_open(struct server *s, int local_fd, int tcp_fd, struct pale_err *e)
{
    s->world->server = s;
    s->world->cut_token = cut_token;
    s->local = (struct loop_source){.fd = local_fd, .ready = on_local};
    s->tcp = (struct loop_source){.fd = tcp_fd, .ready = on_tcp};
    s->most = most_conns();
    s->again = (struct loop_timer){.fire = on_again};
    s->last = (struct loop_timer){.fire = on_last};
    int r = loop_add(s->loop, &s->local, EPOLLIN, e);
    return r == 0 && tcp_fd >= 0 ? loop_add(s->loop, &s->tcp, EPOLLIN, e) : r;
}

static void close_listener(struct server *s, struct loop_source *source)
{
    if (source->fd >= 0)
        loop_remove(s->loop, source);
    own_close(&source->fd);
}

static bool is_endless(const struct call *call)
{
    return call && (call->op->output == OUTPUT_EVENTS || call->op->output == OUTPUT_SOCKET || call->op->run == op_mcp_lines);
}

void server_drain(struct server *s)
{
    if (s->draining)
        return;
    s->draining = true;
    /* Closed, or whoever comes would wait for us, and the next daemon would not get the port. */
    close_listener(s, &s->local);
    close_listener(s, &s->tcp);
    loop_disarm(s->loop, &s->again);
    loop_arm(s->loop, &s->last, clock_ms() + REST_DRAIN_MS);
    s->world->ending = true; /* for those who are cut off now */
    for (struct conn *c = s->conns, *next; c; c = next) {
        next = c->next;
        if (is_endless(c->call) || (!c->call && c->out.len == 0))
            conn_cut(c);
    }
    s->world->ending = false;
    if (s->count == 0)
        s->loop->stop = true;
}

void server_close(struct server *s)
{
    while (s->conns)
        conn_cut(s->conns);
}
