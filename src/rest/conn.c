/* SPDX-License-Identifier: Apache-2.0 */
/* Owns HTTP connections: what is sent and read on one, how long it is waited for, its end. */
#include "rest/conn.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/wsframe.h"
#include "rest/asking.h"

#define IN_MAX (WS_HEAD_MAX + WS_PAYLOAD_MAX + 65536u)
#define IN_HIGH 65536u /* bytes read ahead of what is served; a frame of a socket is read whole */
#define READ_STEP 16384u

static void process(struct conn *c);

bool conn_enter(struct conn *c)
{
    bool was = c->busy;
    c->busy = true;
    return was;
}

static void release(struct conn *c)
{
    buf_done(&c->in);
    buf_done(&c->out);
    buf_done(&c->json);
    buf_done(&c->message);
    free(c);
}

void conn_leave(struct conn *c, bool was)
{
    if (was)
        return;
    if (!c->dead)
        process(c);
    c->busy = false;
    if (c->dead)
        release(c);
}

static struct conn *of_source(struct loop_source *s)
{
    return (struct conn *)((char *)s - offsetof(struct conn, source));
}

void conn_cut(struct conn *c)
{
    struct server *s = c->server;
    if (c->dead)
        return;
    c->dead = true;
    loop_remove(s->loop, &c->source);
    loop_disarm(s->loop, &c->timer);
    close(c->source.fd);
    *c->link = c->next;
    if (c->next)
        c->next->link = c->link;
    s->unsent -= c->out.len;
    struct call *call = c->call;
    c->call = NULL;
    if (call) {
        call->bringer = NULL;
        call_leave(call);
    }
    server_left(s);
    if (!c->busy)
        release(c);
}

/* --- sending --- */

static void set_events(struct conn *c)
{
    bool reads = c->state != CONN_WIRE || c->wants;
    /* A client that sends more while it is served is not read on, but it is noticed if it leaves. */
    if (c->in.len >= (c->state == CONN_SOCKET ? WS_HEAD_MAX + WS_PAYLOAD_MAX : IN_HIGH) || c->left ||
        (c->state != CONN_SOCKET && c->state != CONN_WIRE && c->out.len > REST_OUT_HIGH))
        reads = false;
    reads = reads || c->state == CONN_LEAVING;
    loop_want(c->server->loop, &c->source,
              (c->left ? 0 : EPOLLRDHUP) | (reads ? EPOLLIN : 0) | (c->out.len > 0 || c->waits_room ? EPOLLOUT : 0));
}

/* A client that is still sending when it is answered would have the answer torn from its hands by a reset: what it sends is taken and
 * thrown away for a while. */
static void linger(struct conn *c)
{
    c->state = CONN_LEAVING;
    c->deadline_ms = clock_ms() + REST_LINGER_MS;
    loop_arm(c->server->loop, &c->timer, c->deadline_ms);
    (void)shutdown(c->source.fd, SHUT_WR);
}

void conn_flush(struct conn *c)
{
    while (!c->dead && c->out.len > 0) {
        ssize_t n = send(c->source.fd, c->out.data, c->out.len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno != EAGAIN)
            return conn_cut(c);
        if (n < 0)
            break;
        buf_consume(&c->out, (size_t)n);
        c->server->unsent -= (size_t)n;
        c->sent_ms = clock_ms();
    }
    /* What a long answer needed is given back. */
    if (!c->dead && c->out.len == 0 && c->out.cap > REST_OUT_HIGH) {
        buf_done(&c->out);
        buf_init(&c->out, REST_OUT_MAX);
    }
    if (!c->dead && c->out.len == 0 && c->ended && c->close && c->state != CONN_LEAVING) {
        if ((c->body_done && !c->lingers) || c->left)
            return conn_cut(c);
        linger(c);
    }
    if (!c->dead)
        set_events(c);
}

void conn_send(struct conn *c, const void *p, size_t n)
{
    if (c->dead)
        return;
    if (c->out.len == 0)
        c->sent_ms = clock_ms();
    buf_add(&c->out, p, n);
    if (!c->out.failed)
        c->server->unsent += n;
    /* All that clients have asked for and do not take has a bound, and so has each. */
    if (c->out.failed || c->server->unsent > REST_UNSENT_MAX)
        conn_cut(c);
}

bool conn_leave_sent(struct conn *c, bool was)
{
    if (!c->dead)
        conn_flush(c);
    bool room = !c->dead && c->out.len < REST_OUT_HIGH;
    c->waits_room = c->waits_room || !room;
    conn_leave(c, was);
    return room;
}

/* --- reading --- */

/* What can be done now. False if there is nothing before more comes. */
static bool advance(struct conn *c)
{
    switch (c->state) {
    case CONN_HEAD:
        return asking_head(c);
    case CONN_BODY:
        return asking_body(c);
    case CONN_CALL:
        return c->wants && asking_body(c);
    case CONN_SOCKET:
        socket_take(c);
        return false;
    case CONN_WIRE:
        passing_take(c);
        return false;
    case CONN_LEAVING:
        return false;
    }
    return false;
}

static void process(struct conn *c)
{
    bool more = true;
    while (more && !c->dead) {
        while (!c->dead && advance(c))
            ;
        size_t waited = c->out.len;
        if (!c->dead)
            conn_flush(c);
        /* What was put off because too much waited to be sent must not wait for the client to say more. */
        more = waited > REST_OUT_HIGH && c->out.len <= REST_OUT_HIGH;
    }
}

/* --- events --- */

static void client_left(struct conn *c)
{
    c->left = c->close = true;
    if (c->state == CONN_WIRE && c->call)
        return passing_left(c);
    /* Nobody waits for an answer any more, unless it stands there ready to be sent. */
    if (c->call || c->out.len == 0)
        conn_cut(c);
    else
        set_events(c);
}

static void take_bytes(struct conn *c)
{
    if (c->state == CONN_LEAVING)
        buf_clear(&c->in);
    if (!buf_reserve(&c->in, READ_STEP))
        return conn_cut(c);
    ssize_t n = recv(c->source.fd, c->in.data + c->in.len, c->in.cap - c->in.len, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n < 0)
        return conn_cut(c);
    if (n == 0)
        return client_left(c);
    c->in.len += (size_t)n;
    process(c);
}

static void on_ready(struct loop_source *s, uint32_t events)
{
    struct conn *c = of_source(s);
    c->busy = true;
    /* One that leaves while the keeper takes nothing from it is gone, as it is for a keeper. */
    if (events & (EPOLLERR | EPOLLHUP) || (c->state == CONN_WIRE && !c->wants && !c->left && (events & EPOLLRDHUP)))
        conn_cut(c);
    if (!c->dead && (events & EPOLLOUT) && c->state == CONN_SOCKET)
        process(c); /* it may have waited for room to answer */
    if (!c->dead && (events & EPOLLOUT)) {
        conn_flush(c);
        if (!c->dead && c->waits_room && c->out.len < REST_OUT_HIGH / 2) {
            c->waits_room = false;
            if (c->call && c->call->room)
                c->call->room(c->call);
        }
        if (!c->dead)
            process(c);
    }
    if (!c->dead && (events & EPOLLIN))
        take_bytes(c);
    else if (!c->dead && (events & EPOLLRDHUP))
        client_left(c); /* one that has sent more ahead than we read */
    if (!c->dead)
        conn_flush(c);
    c->busy = false;
    if (c->dead)
        release(c);
}

/* Whoever calls with a token that has expired meanwhile, or takes nothing of what he asked for, is not waited for. */
static bool is_over(const struct conn *c, int64_t now)
{
    if (c->out.len > 0 && now - c->sent_ms > REST_STALL_MS)
        return true;
    return c->call && c->call->who.expires_unix_ms && (int64_t)clock_unix_ms() > c->call->who.expires_unix_ms;
}

static void on_timer(struct loop_timer *t)
{
    struct conn *c = (struct conn *)((char *)t - offsetof(struct conn, timer));
    int64_t now = clock_ms();
    if (is_over(c, now))
        return conn_cut(c);
    bool waits = c->state == CONN_HEAD || c->state == CONN_BODY || c->state == CONN_LEAVING;
    if (!waits)
        c->deadline_ms = now + REST_STALL_MS;
    if (c->deadline_ms > now)
        return loop_arm(c->server->loop, t, c->deadline_ms);
    conn_cut(c);
}

bool conn_add(struct server *s, int fd, bool local)
{
    struct conn *c = calloc(1, sizeof(*c));
    if (!c) {
        close(fd);
        return false;
    }
    *c =
        (struct conn){.server = s, .source = {.fd = fd, .ready = on_ready}, .timer = {.fire = on_timer}, .local = local, .body_done = true};
    buf_init(&c->in, IN_MAX);
    buf_init(&c->out, REST_OUT_MAX);
    buf_init(&c->json, REST_BODY_MAX);
    buf_init(&c->message, REST_BODY_MAX);
    if (loop_add(s->loop, &c->source, EPOLLIN, NULL) < 0) {
        close(fd);
        release(c);
        return false;
    }
    c->next = s->conns;
    c->link = &s->conns;
    if (c->next)
        c->next->link = &c->next;
    s->conns = c;
    c->deadline_ms = clock_ms() + REST_HEAD_WAIT_MS;
    loop_arm(s->loop, &c->timer, c->deadline_ms);
    return true;
}
