/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the vice the daemon is fuzzed in.
 *
 * How it works: the files of fleet/, ops/ and rest/ are compiled with the names of rest_names.h, and this file stands in for base/clock,
 * as handloop does for base/loop; the registry is real (rest_store.c). What the daemon sends to a keeper or to the steward is
 * cut into frames again and read by their strict parsers, what it sends to a client by rest_peer.c. After each step the loop must come
 * to rest, every buffer be within its maximum, and nobody wait for what has happened already. */
#include "rest_rig.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/un.h>

#include "base/clock.h"
#include "base/quote.h"
#include "handloop.h"
#include "net/wsframe.h"
#include "ops/ops.h"

#define FD_CONN 1000
#define FD_LOCAL 2000
#define FD_TCP 2001
#define FD_STEWARD 2002
#define FD_NOTIFY 2003
#define HAPPENINGS_MAX 16
#define TURNS_MAX 20000
#define SPLIT_MOST 2048 /* longer things are not read by the byte */
#define BUFFER_MAX (4u << 20)

struct rig rig;

static struct {
    struct {
        uint32_t mask;
        bool in_boxes;
        char name[32];
    } happenings[HAPPENINGS_MAX];
    size_t happened;
    bool foreign;
} own;

/* --- connections --- */

UNSEEN static struct rig_conn *conn_of(int fd)
{
    assert(fd >= FD_CONN && fd < FD_CONN + RIG_CONNS && rig.conns[fd - FD_CONN].held);
    return &rig.conns[fd - FD_CONN];
}

UNSEEN static struct rig_conn *new_conn(enum rig_kind kind)
{
    for (int i = 0; i < RIG_CONNS; i++)
        if (rig.conns[i].kind == RIG_FREE) {
            struct rig_conn *c = &rig.conns[i];
            *c = (struct rig_conn){.kind = kind, .room = SIZE_MAX, .box = -1};
            buf_init(&c->in, BUFFER_MAX);
            buf_init(&c->out, BUFFER_MAX);
            buf_init(&c->answers.text, BUFFER_MAX);
            buf_init(&c->requests.bytes, BUFFER_MAX);
            return c;
        }
    return NULL;
}

UNSEEN static void free_conn(struct rig_conn *c)
{
    buf_done(&c->in);
    buf_done(&c->out);
    buf_done(&c->answers.text);
    buf_done(&c->requests.bytes);
    c->kind = RIG_FREE;
    c->held = false;
}

UNSEEN struct rig_conn *rig_nth(enum rig_kind kind, unsigned n)
{
    unsigned count = 0;
    for (int i = 0; i < RIG_CONNS; i++)
        count += rig.conns[i].kind == kind && (kind == RIG_CLIENT || rig.conns[i].held);
    for (int i = 0; i < RIG_CONNS && count; i++)
        if (rig.conns[i].kind == kind && (kind == RIG_CLIENT || rig.conns[i].held) && n-- % count == 0)
            return &rig.conns[i];
    return NULL;
}

/* With RIG_TRACE in the environment it is shown what goes to and fro: > to the daemon, < from it. */
UNSEEN static void trace(const struct rig_conn *c, char way, const void *p, size_t n)
{
    static const char *const names[] = {"?", "client", "keeper", "steward"};
    char shown[400];
    if (getenv("RIG_TRACE"))
        fprintf(stderr, "%s %d %c %zu %s\n", names[c->kind], (int)(c - rig.conns), way, n, quote_into(shown, sizeof(shown), p, n));
}

UNSEEN void rig_push(struct rig_conn *c, const void *p, size_t n)
{
    if (c->gone || c->shut)
        return;
    trace(c, '>', p, n);
    buf_add(&c->in, p, n);
    assert(!c->in.failed);
    if (c->kind == RIG_CLIENT)
        peer_sent(c, p, n);
}

UNSEEN void rig_frame(struct rig_conn *c, uint8_t type, const void *p, size_t n)
{
    uint8_t head[FRAME_HEAD];
    uint64_t v = 0;
    frame_put_head(head, type, 0, (uint32_t)n);
    c->wild = c->wild || (type == TELL_STARTED && c->begun);
    c->begun = c->begun || type == TELL_STARTED;
    if (type == TELL_STARTED && msg_u64_parse(p, n, &v) && v)
        c->started = true;
    if (type == TELL_JOB && c->input_ended)
        c->input_told = true;
    rig_push(c, head, sizeof(head));
    rig_push(c, p, n);
}

struct rig_conn *rig_client(bool local, bool foreign)
{
    unsigned n = 0;
    for (int i = 0; i < RIG_CONNS; i++)
        n += rig.conns[i].kind == RIG_CLIENT;
    struct rig_conn *c = n < RIG_CLIENTS ? new_conn(RIG_CLIENT) : NULL;
    if (c) {
        c->waits = true;
        c->local = local;
        own.foreign = foreign;
    }
    return c;
}

/* The client that is passed through to this keeper, or NULL. */
UNSEEN static const struct conn *passage_of(const struct rig_conn *c)
{
    for (const struct conn *d = rig.server.conns; d; d = d->next) {
        const struct talk *a = d->call && d->call->op && d->call->op->run == op_box_wire ? d->call->state : NULL;
        if (a && a->link && a->link->source.fd == FD_CONN + (int)(c - rig.conns))
            return d;
    }
    return NULL;
}

UNSEEN static void hear(struct rig_conn *c)
{
    struct frame f;
    size_t used, at = 0;
    int got;
    if (c->kind == RIG_CLIENT)
        return peer_got(c);
    if (passage_of(c)) /* a client speaks to the keeper as it likes */
        return buf_clear(&c->out);
    while ((got = frame_parse(c->out.data + at, c->out.len - at, &f, &used)) == 1) {
        world_heard(c, &f);
        at += used;
    }
    assert(got == 0);
    buf_consume(&c->out, at);
}

/* --- in place of the system's calls --- */

UNSEEN ssize_t rig_send(int fd, const void *p, size_t n, int flags)
{
    struct rig_conn *c = conn_of(fd);
    assert(flags & MSG_DONTWAIT && flags & MSG_NOSIGNAL && n > 0 && !c->finished);
    if (c->gone)
        return errno = EPIPE, -1;
    if (c->room == 0) {
        c->room = c->refill;
        c->refill = 0;
        return errno = EAGAIN, -1;
    }
    if (c->room != SIZE_MAX) {
        n = n < c->room ? n : c->room;
        c->room -= n;
    }
    trace(c, '<', p, n);
    buf_add(&c->out, p, n);
    assert(!c->out.failed);
    hear(c);
    return (ssize_t)n;
}

UNSEEN ssize_t rig_recv(int fd, void *p, size_t n, int flags)
{
    struct rig_conn *c = conn_of(fd);
    assert(flags & MSG_DONTWAIT && n > 0);
    if (c->in.len == 0)
        return c->gone || c->shut ? 0 : (errno = EAGAIN, -1);
    n = n < c->in.len ? n : c->in.len;
    n = c->split && n > c->split && c->in.len <= SPLIT_MOST ? c->split : n;
    memcpy(p, c->in.data, n);
    buf_consume(&c->in, n);
    return (ssize_t)n;
}

UNSEEN static int give(struct rig_conn *c)
{
    if (!c)
        return errno = EMFILE, -1;
    c->held = true;
    return FD_CONN + (int)(c - rig.conns);
}

UNSEEN int rig_accept(int fd, struct sockaddr *sa, socklen_t *len, int flags)
{
    (void)sa, (void)len;
    assert(flags == (SOCK_CLOEXEC | SOCK_NONBLOCK));
    for (int i = 0; i < RIG_CONNS; i++)
        if (rig.conns[i].kind == RIG_CLIENT && rig.conns[i].waits && rig.conns[i].local == (fd == FD_LOCAL)) {
            rig.conns[i].waits = false;
            return give(&rig.conns[i]);
        }
    return errno = EAGAIN, -1;
}

int rig_getsockopt(int fd, int level, int name, void *p, socklen_t *len)
{
    assert(conn_of(fd)->local && level == SOL_SOCKET && name == SO_PEERCRED && *len == sizeof(struct ucred));
    *(struct ucred *)p = (struct ucred){.uid = geteuid() + own.foreign};
    return 0;
}

int rig_setsockopt(int fd, int level, int name, const void *p, socklen_t len)
{
    (void)level, (void)name, (void)p, (void)len;
    return conn_of(fd) ? 0 : -1;
}

int rig_socket(int domain, int type, int protocol)
{
    assert(domain == AF_UNIX && type & SOCK_NONBLOCK && protocol == 0);
    return give(new_conn(RIG_KEEPER));
}

UNSEEN int rig_connect(int fd, const struct sockaddr *sa, socklen_t len)
{
    const char *path = ((const struct sockaddr_un *)sa)->sun_path;
    struct rig_conn *c = conn_of(fd);
    assert(len == sizeof(struct sockaddr_un) && strncmp(path, "/rig/", 5) == 0);
    for (int i = 0; i < RIG_BOXES; i++) {
        const struct rig_box *b = &rig.boxes[i];
        if (!b->there || strncmp(path + 5, b->id, BOX_ID_LEN) != 0)
            continue;
        c->box = i;
        if (b->runs && !b->refuses)
            return 0;
        return errno = b->runs ? ECONNREFUSED : ENOENT, -1;
    }
    return errno = ENOENT, -1;
}

/* Of the two ends ours is given to the steward at once; we remember him by the other. */
int rig_socketpair(int domain, int type, int protocol, int *pair)
{
    assert(domain == AF_UNIX && type & SOCK_STREAM && protocol == 0);
    pair[0] = give(new_conn(RIG_DEED));
    pair[1] = FD_STEWARD;
    return pair[0] < 0 ? -1 : 0;
}

ssize_t rig_sendmsg(int fd, const struct msghdr *m, int flags)
{
    assert(fd == FD_STEWARD && flags & MSG_DONTWAIT && m->msg_controllen >= CMSG_LEN(sizeof(int)));
    return 1;
}

/* The daemon says no more, but listens for a while. */
int rig_shutdown(int fd, int how)
{
    struct rig_conn *c = conn_of(fd);
    assert(how == SHUT_WR && (c->kind == RIG_KEEPER || !c->finished));
    if (c->finished)
        return 0;
    c->finished = true;
    const struct conn *d = c->kind == RIG_KEEPER ? passage_of(c) : NULL;
    if (c->kind == RIG_CLIENT)
        peer_closed(c);
    else /* a keeper hears that its client has said all when it has got all */
        assert(d && d->in.len == 0 && conn_of(d->source.fd)->in.len == 0);
    return 0;
}

#undef close
UNSEEN int rig_close(int fd)
{
    if (fd < FD_CONN)
        return close(fd);
    if (fd >= FD_CONN + RIG_CONNS)
        return 0;
    struct rig_conn *c = conn_of(fd);
    for (size_t i = 0; i < handloop.count; i++)
        assert(handloop.sources[i]->fd != fd);
    trace(c, 'x', "", 0);
    c->held = false;
    if (c->kind == RIG_CLIENT && !c->finished)
        peer_closed(c);
    free_conn(c);
    return 0;
}

#undef open
/* The records of a box; nothing else is opened. */
int rig_open(const char *path, int flags, ...)
{
    static int files[2] = {-1, -1};
    static const char *const texts[2] = {"{\"event\":\"made\"}\n{\"event\":\"began\"}\n{\"event", "{\"box\":\"a\",\"rows\":[]}\n"};
    char again[32];
    size_t n = strlen(path), which = n > 8 && strcmp(path + n - 8, "/receipt") == 0;
    assert(strncmp(path, "/rig/", 5) == 0 && flags & O_CLOEXEC && flags & O_NOFOLLOW);
    if (files[which] < 0) {
        files[which] = memfd_create("record", MFD_CLOEXEC);
        assert(write(files[which], texts[which], strlen(texts[which])) == (ssize_t)strlen(texts[which]));
    }
    snprintf(again, sizeof(again), "/proc/self/fd/%d", files[which]);
    return open(again, O_RDONLY | O_CLOEXEC);
}

UNSEEN ssize_t rig_read(int fd, void *p, size_t n)
{
    size_t at = 0;
    assert(fd == FD_NOTIFY);
    for (size_t i = 0; i < own.happened; i++) {
        struct inotify_event ev = {.wd = own.happenings[i].in_boxes ? 1 : 2, .mask = own.happenings[i].mask, .len = 32};
        assert(at + sizeof(ev) + ev.len <= n);
        memcpy((char *)p + at, &ev, sizeof(ev));
        memcpy((char *)p + at + sizeof(ev), own.happenings[i].name, 32);
        at += sizeof(ev) + ev.len;
    }
    own.happened = 0;
    return (ssize_t)at;
}

UNSEEN void rig_happen(uint32_t mask, bool in_boxes, const char *name)
{
    if (own.happened == HAPPENINGS_MAX)
        return;
    own.happenings[own.happened].mask = mask;
    own.happenings[own.happened].in_boxes = in_boxes;
    memset(own.happenings[own.happened].name, 0, 32);
    snprintf(own.happenings[own.happened++].name, 32, "%s", name);
}

int rig_inotify_init(int flags)
{
    assert(flags == (IN_CLOEXEC | IN_NONBLOCK));
    return FD_NOTIFY;
}

int rig_inotify_watch(int fd, const char *path, uint32_t mask)
{
    assert(fd == FD_NOTIFY && mask & IN_ONLYDIR);
    return strcmp(path, "/rig/boxes") == 0 ? 1 : 2;
}

int rig_mkdir(const char *path, mode_t mode)
{
    assert(strcmp(path, "/rig/boxes") == 0 && mode == 0700);
    return errno = EEXIST, -1;
}

int rig_access(const char *path, int mode)
{
    assert(mode == F_OK);
    for (int i = 0; i < RIG_BOXES; i++)
        if (rig.boxes[i].there && rig.boxes[i].runs && strncmp(path + 5, rig.boxes[i].id, BOX_ID_LEN) == 0)
            return 0;
    return errno = ENOENT, -1;
}

int rig_clock_gettime(clockid_t id, struct timespec *ret)
{
    assert(id == CLOCK_REALTIME);
    int64_t ms = RIG_UNIX_MS + rig.now_ms;
    *ret = (struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    return 0;
}

UNSEEN ssize_t rig_getrandom(void *p, size_t n, unsigned flags)
{
    assert(flags == 0);
    for (size_t i = 0; i < n; i++)
        ((uint8_t *)p)[i] = (uint8_t)(rig.made++ * 37 >> 3);
    return (ssize_t)n;
}

/* Calls are counted: ops/call.c alone is compiled with these. */
UNSEEN void *rig_call_new(size_t n, size_t size)
{
    rig.calls++;
    return calloc(n, size);
}

UNSEEN void rig_call_free(void *p)
{
    assert(rig.calls > 0);
    rig.calls--;
    free(p);
}

/* --- in place of base/clock --- */

int64_t clock_ms(void)
{
    return rig.now_ms;
}

int64_t clock_us(void)
{
    return rig.now_ms * 1000;
}

uint64_t clock_unix_ms(void)
{
    return 1767225600000 + (uint64_t)clock_ms();
}

const char *clock_stamp(char *ret, size_t cap)
{
    snprintf(ret, cap, "2026-01-01T00:00:00.000000Z");
    return ret;
}

/* --- turning --- */

UNSEEN static uint32_t ready_events(const struct loop_source *s)
{
    uint32_t e = 0;
    if (s->fd == FD_LOCAL || s->fd == FD_TCP) {
        for (int i = 0; i < RIG_CONNS; i++)
            if (rig.conns[i].kind == RIG_CLIENT && rig.conns[i].waits && rig.conns[i].local == (s->fd == FD_LOCAL))
                e = EPOLLIN;
    } else if (s->fd == FD_NOTIFY)
        e = own.happened ? EPOLLIN : 0;
    else {
        const struct rig_conn *c = conn_of(s->fd);
        e |= c->in.len || c->shut || c->gone ? EPOLLIN : 0;
        e |= c->shut || c->gone ? EPOLLRDHUP : 0;
        e |= c->gone ? EPOLLHUP : 0;
        e |= c->room || c->gone ? EPOLLOUT : 0;
    }
    return e & (s->events | EPOLLHUP | EPOLLERR);
}

UNSEEN static void check_buf(const struct buf *b)
{
    assert(!b->failed && b->len <= b->cap && b->cap <= b->max);
}

/* A call that waits must have something to wait for. */
UNSEEN static void check_talk(const struct conn *d, const struct talk *a)
{
    const struct call *call = d->call;
    const struct tether *l = a->link;
    if (!l)
        return;
    const struct rig_conn *k = conn_of(l->source.fd);
    check_buf(&l->in);
    check_buf(&l->out);
    assert(k->room != SIZE_MAX || k->gone || l->out.len == 0);
    assert(!l->paused || d->waits_room);
    assert(l->paused || k->in.len == 0);
    if ((call->piece && !d->body_done) || d->state == CONN_SOCKET || (d->state == CONN_WIRE && !d->left))
        assert(d->wants || l->out.len > 0);
    /* It is told at once, or when its input has been taken. */
    if (call->op->run == op_job_start && k->started)
        assert(!k->input_told && (call_value(call, "stdin")->given || call_value(call, "stdin_base64")->given));
}

/* Is the state of its calls a talk with a keeper? */
UNSEEN static bool is_talk(const struct op *o)
{
    return o->run != op_events && o->run != op_mcp && o->run != op_mcp_lines;
}

UNSEEN static void check_conn(const struct conn *d)
{
    const struct rig_conn *c = conn_of(d->source.fd);
    struct http_head h;
    struct ws_frame f;
    size_t used;
    check_buf(&d->in);
    check_buf(&d->out);
    check_buf(&d->json);
    check_buf(&d->message);
    assert(!d->dead && !d->busy && (d->call != NULL) == (d->state != CONN_HEAD && d->state != CONN_LEAVING));
    assert((d->state == CONN_LEAVING) == c->finished);
    assert(c->room != SIZE_MAX || d->out.len == 0);
    if (d->out.len == 0 && d->state == CONN_HEAD)
        assert(!d->left && http_head_parse((const char *)d->in.data, d->in.len, HTTP_REQUEST, &h, &used) == 0);
    if (d->state == CONN_BODY || (d->wants && (d->state == CONN_WIRE || (d->state == CONN_CALL && !d->body_done))))
        assert(d->in.len == 0);
    if (d->out.len == 0 && d->state == CONN_SOCKET && d->wants)
        assert(ws_parse(d->in.data, d->in.len, HTTP_REQUEST, &f, &used) == 0);
    if (d->call)
        assert(d->call->bringer == d && !d->call->answered && !d->call->gone &&
               !(d->waits_room && c->room && d->out.len < REST_OUT_HIGH / 2));
    if (d->call && d->call->state && is_talk(d->call->op))
        check_talk(d, d->call->state);
    peer_check(c, d);
}

UNSEEN void rig_settle(void)
{
    int turns = 0;
    size_t count = 0, unsent = 0;
    while (handloop_turn(&rig.world.loop, rig.now_ms, ready_events))
        assert(++turns < TURNS_MAX);
    if (rig.world.loop.stop)
        return;
    for (const struct conn *d = rig.server.conns; d; d = d->next, count++) {
        check_conn(d);
        unsent += d->out.len;
    }
    assert(count == rig.server.count && unsent == rig.server.unsent);
}

void rig_pass(int64_t ms)
{
    int64_t until = rig.now_ms + ms;
    const struct loop *l = &rig.world.loop;
    for (int i = 0; i < 200 && l->timers && l->timers->due_ms <= until && !l->stop; i++) {
        rig.now_ms = l->timers->due_ms > rig.now_ms ? l->timers->due_ms : rig.now_ms;
        rig_settle();
    }
    rig.now_ms = until;
    rig_settle();
}

/* --- the whole --- */

static void post_message(struct call *c)
{
    mcp_http_post(c, &toolbox_offer);
}

static void take_lines(struct call *c)
{
    mcp_lines_open(c, &toolbox_offer);
}

void rig_begin(void)
{
    struct pale_err e;
    memset(&rig, 0, sizeof(rig));
    memset(&own, 0, sizeof(own));
    memset(&handloop, 0, sizeof(handloop));
    rig.now_ms = 100000;
    world_fill();
    rig.world.registry = store_fresh(RIG_UNIX_MS + rig.now_ms);
    rig.world.port = RIG_PORT;
    rig.server = (struct server){.loop = &rig.world.loop, .world = &rig.world, .port = RIG_PORT};
    assert(loop_open(&rig.world.loop, &e) == 0);
    assert(fleet_open(&rig.world.fleet, &rig.world.loop, rig.world.registry, FD_STEWARD, RIG_SAVE_AFTER_MS, &e) == 0);
    assert(mcp_init(&rig.mcp, &rig.world.loop));
    rig.world.mcp = &rig.mcp;
    rig.world.mcp_post = post_message;
    rig.world.mcp_lines = take_lines;
    assert(server_open(&rig.server, FD_LOCAL, FD_TCP, &e) == 0);
    rig_settle();
}

/* The clients, or everybody else. */
UNSEEN static bool all_leave(bool clients)
{
    bool any = false;
    for (int i = 0; i < RIG_CONNS; i++)
        if (rig.conns[i].kind != RIG_FREE && (rig.conns[i].kind == RIG_CLIENT) == clients) {
            rig.conns[i].gone = true;
            rig.conns[i].room = SIZE_MAX;
            any = true;
        }
    return any;
}

UNSEEN void rig_end(void)
{
    struct fleet *f = &rig.world.fleet;
    bool stopped = rig.world.loop.stop;
    rig.world.loop.stop = false;
    (void)all_leave(true);
    rig_settle();
    assert(rig.server.count == 0 && (stopped || rig.world.loop.stop) == rig.server.draining);
    rig.world.loop.stop = false;
    for (int i = 0; i < RIG_CONNS; i++)
        assert(rig.conns[i].kind != RIG_CLIENT || rig.server.draining);
    /* What was begun for them ends when the others leave. */
    rig.deeds_by_hand = rig.watch_by_hand = true;
    for (int i = 0; i < RIG_BOXES; i++)
        rig.boxes[i].runs = rig.boxes[i].there = false;
    for (int i = 0; all_leave(false) || f->doubts; i++) {
        assert(i < 100);
        rig.world.loop.stop = false; /* its time to end may come meanwhile */
        rig_settle();
        rig_pass(20000);
    }
    assert(rig.calls == 0 && rig.mcp.count == 0);
    for (size_t i = 0; i < FLEET_BUCKETS; i++)
        for (const struct lookout *w = f->watch[i]; w; w = w->next)
            assert(w->calls == 0);
    server_close(&rig.server);
    fleet_close(f);
    for (int i = 0; i < RIG_CONNS; i++) {
        assert(!rig.conns[i].held);
        if (rig.conns[i].kind != RIG_FREE)
            free_conn(&rig.conns[i]);
    }
}
