/* SPDX-License-Identifier: Apache-2.0 */
/* Owns connections from the host's loopback to ports of the box that its policy publishes.
 *
 * How it works: the keeper listens on the host and hands us the sockets. A socket that was made in the box's namespace stays there wherever
 * it is connected from, so a few of them came with the others: each carries one connection at a time to the box's own loopback, and is
 * disconnected and used again after it. Both ends are untrusted and bytes are not looked at. Nothing of the host's enters the box, and what
 * has no record in the audit is not connected. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "gateway/gateway.h"

#define LAST_MS 10000 /* a box that does not take the end of a connection for so long gets a reset */

static uint32_t index_of(const struct passage *p)
{
    return (uint32_t)(p - p->g->passages);
}

static uint64_t number_of(const struct passage *p)
{
    return (uint64_t)p->generation << 32 | (FLOWS_MAX + index_of(p));
}

static bool is_shut(const struct gateway *g)
{
    return g->is_cut || !g->has_policy || g->policy.network == NETWORK_NONE;
}

static void want(struct passage *p, struct loop_source *s, uint32_t events)
{
    struct pale_err e;
    if (s->fd < 0 || s->events == events)
        return;
    if (!events)
        loop_remove(&p->g->loop, s);
    else if (s->events)
        loop_want(&p->g->loop, s, events);
    else if (loop_add(&p->g->loop, s, events, &e) < 0)
        p->due_ms = 1; /* the next tick ends it */
}

static bool takes(const struct half *h)
{
    return !h->held && !h->ended && !h->starved;
}

static void watch(struct passage *p)
{
    want(p, &p->client, (takes(&p->up) ? EPOLLIN : 0) | (p->down.held ? EPOLLOUT : 0));
    want(p, &p->box, (takes(&p->down) ? EPOLLIN : 0) | (p->up.held ? EPOLLOUT : 0));
}

static void disconnect(int fd)
{
    const struct sockaddr none = {.sa_family = AF_UNSPEC};
    (void)!connect(fd, &none, sizeof(none));
}

/* Has the box taken all, and we what it had to say to it? */
static bool is_closed(int fd)
{
    struct tcp_info info = {0};
    socklen_t n = sizeof(info);
    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &n) < 0 || info.tcpi_state == TCP_CLOSE || info.tcpi_state == TCP_TIME_WAIT;
}

/* Those that waited for a free one. */
static void listen_again(struct gateway *g)
{
    for (uint32_t i = 0; g->inlets_wait && i < g->inlet_count; i++)
        if (g->inlets[i].source.fd >= 0)
            loop_want(&g->loop, &g->inlets[i].source, EPOLLIN);
    g->inlets_wait = false;
}

/* The socket of the box is as new. */
static void free_passage(struct passage *p)
{
    disconnect(p->box.fd);
    p->state = PASSAGE_FREE;
    p->g->meters->open--;
    listen_again(p->g);
}

/* The box may still have to take the last bytes. */
static void part(struct passage *p, bool at_once)
{
    struct gateway *g = p->g;
    static const struct linger now = {.l_onoff = 1, .l_linger = 0};
    if (at_once)
        setsockopt(p->client.fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    want(p, &p->client, 0);
    want(p, &p->box, 0);
    own_close(&p->client.fd);
    relay_release(g, &p->up);
    relay_release(g, &p->down);
    if (p->state == PASSAGE_DIAL || p->state == PASSAGE_OPEN)
        liaison_inward(g, GATE_END, number_of(p), p);
    p->state = PASSAGE_LAST;
    p->due_ms = clock_ms() + LAST_MS;
    gateway_wake(g);
    if (at_once || is_closed(p->box.fd))
        free_passage(p);
}

static void count(struct passage *p)
{
    struct gate_meters *m = p->g->meters;
    uint64_t in = p->up.passed - p->counted_in, out = p->down.passed - p->counted_out;
    m->in += in;
    m->out += out;
    m->host[p->row].in += in;
    m->host[p->row].out += out;
    p->counted_in = p->up.passed;
    p->counted_out = p->down.passed;
}

static void move(struct passage *p)
{
    enum relay up = relay_move(p->g, &p->up, p->client.fd, p->box.fd);
    enum relay down = up == RELAY_BROKEN ? up : relay_move(p->g, &p->down, p->box.fd, p->client.fd);
    count(p);
    if (up == RELAY_BROKEN || down == RELAY_BROKEN)
        part(p, true);
    else if (up == RELAY_ENDED && down == RELAY_ENDED)
        part(p, false);
    else
        watch(p);
    if (p->up.starved || p->down.starved)
        gateway_wake(p->g);
}

static void on_client(struct loop_source *s, uint32_t events)
{
    struct passage *p = (struct passage *)((char *)s - offsetof(struct passage, client));
    (void)events;
    move(p);
}

static void on_box(struct loop_source *s, uint32_t events)
{
    struct passage *p = (struct passage *)((char *)s - offsetof(struct passage, box));
    int error = 0;
    socklen_t n = sizeof(error);
    (void)events;
    if (p->state == PASSAGE_DIAL && (getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &error, &n) < 0 || error)) {
        part(p, true);
        return;
    }
    p->state = PASSAGE_OPEN;
    move(p);
}

void inward_go(struct gateway *g, uint64_t number)
{
    uint32_t at = (uint32_t)number - FLOWS_MAX;
    struct passage *p = &g->passages[at < DETOUR_INWARD ? at : 0];
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    if ((uint32_t)number < FLOWS_MAX || at >= DETOUR_INWARD || p->state != PASSAGE_ASKED || p->generation != number >> 32)
        return;
    to.sin_port = htons(p->port);
    p->row = meter_published(g, p->port);
    g->meters->connections++;
    g->meters->host[p->row].connections++;
    p->state = PASSAGE_DIAL;
    if (connect(p->box.fd, (struct sockaddr *)&to, sizeof(to)) < 0 && errno != EINPROGRESS)
        part(p, true);
    else
        want(p, &p->box, EPOLLOUT);
}

static struct passage *find_free(struct gateway *g)
{
    for (uint32_t i = 0; i < g->inward_count; i++) {
        struct passage *p = &g->passages[i];
        if (p->state == PASSAGE_LAST && is_closed(p->box.fd))
            free_passage(p);
        if (p->state == PASSAGE_FREE)
            return p;
    }
    return NULL;
}

/* More at once than there are sockets wait in the kernel's queue until one is free. */
static void on_inlet(struct loop_source *s, uint32_t events)
{
    struct inlet *in = (struct inlet *)((char *)s - offsetof(struct inlet, source));
    struct gateway *g = in->g;
    struct passage *p = is_shut(g) ? NULL : find_free(g);
    (void)events;
    if (!p && !is_shut(g)) {
        loop_want(&g->loop, s, 0);
        g->inlets_wait = true;
        return;
    }
    own_fd fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0 || !p)
        return;
    *p = (struct passage){.g = g,
                          .state = PASSAGE_ASKED,
                          .generation = ++g->generation,
                          .port = in->port,
                          .host_port = in->host_port,
                          .client = {.fd = take_fd(&fd), .ready = on_client},
                          .box = {.fd = g->inward[p - g->passages], .ready = on_box},
                          .up = {.pipe = -1, .may_pass = UINT64_MAX},
                          .down = {.pipe = -1, .may_pass = UINT64_MAX},
                          .due_ms = INT64_MAX};
    g->meters->open++;
    liaison_inward(g, GATE_ALLOW, number_of(p), p);
}

void inward_start(struct gateway *g)
{
    /* What the process before us has left in them. */
    for (uint32_t i = 0; i < g->inward_count; i++)
        disconnect(g->inward[i]);
}

void inward_publish(struct gateway *g, int *fd, uint16_t port, uint16_t host_port)
{
    struct pale_err e;
    if (g->inlet_count == EGRESS_PORTS_MAX || *fd < 0)
        return;
    struct inlet *in = &g->inlets[g->inlet_count++];
    *in = (struct inlet){.source = {.fd = take_fd(fd), .ready = on_inlet}, .g = g, .port = port, .host_port = host_port};
    if (loop_add(&g->loop, &in->source, EPOLLIN, &e) < 0)
        own_close(&in->source.fd);
}

void inward_judge(struct gateway *g)
{
    for (uint32_t i = 0; is_shut(g) && i < g->inward_count; i++)
        if (g->passages[i].state != PASSAGE_FREE && g->passages[i].state != PASSAGE_LAST)
            part(&g->passages[i], true);
}

bool inward_tick(struct gateway *g, int64_t now)
{
    bool waits = false;
    for (uint32_t i = 0; i < g->inward_count; i++) {
        struct passage *p = &g->passages[i];
        if (p->state == PASSAGE_LAST && (p->due_ms <= now || is_closed(p->box.fd))) {
            free_passage(p);
        } else if (p->state == PASSAGE_OPEN && p->due_ms <= now) {
            part(p, true);
        } else if (p->state == PASSAGE_OPEN && (p->up.starved || p->down.starved)) {
            p->up.starved = p->down.starved = false;
            move(p);
        }
        waits |= p->state == PASSAGE_LAST || p->up.starved || p->down.starved;
    }
    listen_again(g);
    return waits;
}
