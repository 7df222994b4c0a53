/* SPDX-License-Identifier: Apache-2.0 */
/* Owns tethers. */
#include "fleet/tether.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/own.h"

#define IN_MAX (FRAME_HEAD + FRAME_PAYLOAD_MAX + 65536u)
#define OUT_MAX (2u * (FRAME_HEAD + FRAME_PAYLOAD_MAX))
#define READ_STEP 32768u

static void set_events(struct tether *l)
{
    bool kick = l->kicked && !l->paused; /* must not be forgotten for what is sent meanwhile */
    loop_want(l->loop, &l->source, (l->paused ? 0 : EPOLLIN) | (l->out.len > 0 || kick ? EPOLLOUT : 0));
}

static void end(struct tether *l)
{
    if (l->ended || l->dead)
        return;
    l->ended = true;
    loop_remove(l->loop, &l->source);
    l->use->gone(l);
}

static bool flush(struct tether *l)
{
    while (l->out.len > 0) {
        ssize_t n = send(l->source.fd, l->out.data, l->out.len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN;
        buf_consume(&l->out, (size_t)n);
    }
    if (l->shut)
        (void)shutdown(l->source.fd, SHUT_WR);
    return true;
}

/* Hands out whole frames. False if what is there is no frame. */
static bool give(struct tether *l)
{
    size_t at = 0;
    int got = 0;
    while (!l->dead && !l->paused) {
        struct frame f;
        size_t used = 0;
        got = frame_parse(l->in.data + at, l->in.len - at, &f, &used);
        if (got != 1)
            break;
        at += used;
        l->use->frame(l, &f);
    }
    if (!l->dead)
        buf_consume(&l->in, at);
    return got >= 0;
}

static void take(struct tether *l)
{
    if (!buf_reserve(&l->in, READ_STEP))
        return end(l);
    ssize_t n = recv(l->source.fd, l->in.data + l->in.len, l->in.cap - l->in.len, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0 && l->use->bytes)
        return l->use->bytes(l, l->in.data, (size_t)n);
    if (n > 0)
        l->in.len += (size_t)n;
    if (n <= 0 || !give(l))
        end(l);
}

static void release(struct tether *l)
{
    buf_done(&l->in);
    buf_done(&l->out);
    free(l);
}

static void on_ready(struct loop_source *s, uint32_t events)
{
    struct tether *l = (struct tether *)((char *)s - offsetof(struct tether, source));
    l->busy = true;
    bool takes = !(events & EPOLLOUT) || flush(l);
    /* One that has left takes nothing more, but may have said why: that is heard first, and then its end. */
    if (!takes)
        buf_clear(&l->out);
    if (!l->dead && !l->ended && takes && (events & EPOLLOUT) && l->out.len == 0 && l->use->room)
        l->use->room(l);
    if (!l->dead && !l->ended && l->kicked && !l->paused) {
        l->kicked = false;
        if (!give(l))
            end(l);
    }
    if (!l->dead && !l->ended && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) && !l->paused)
        take(l);
    else if (!l->dead && !l->ended && l->paused && (events & (EPOLLHUP | EPOLLERR)))
        loop_remove(l->loop, &l->source); /* heard again when it goes on */
    if (!l->dead && !l->ended)
        set_events(l);
    l->busy = false;
    if (l->dead)
        release(l);
}

int tether_take(struct loop *loop, int fd, const struct tether_use *use, void *owner, struct tether **ret, struct pale_err *e)
{
    struct tether *l = calloc(1, sizeof(*l));
    if (!l) {
        close(fd);
        return err_nomem(e);
    }
    *l = (struct tether){.loop = loop, .source = {.fd = fd, .ready = on_ready}, .use = use, .owner = owner};
    buf_init(&l->in, IN_MAX);
    buf_init(&l->out, OUT_MAX);
    int r = loop_add(loop, &l->source, EPOLLIN, e);
    if (r < 0) {
        close(fd);
        release(l);
        return r;
    }
    *ret = l;
    return 0;
}

int tether_open(struct loop *loop, const char *path, const struct tether_use *use, void *owner, struct tether **ret, struct pale_err *e)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    size_t n = strlen(path);
    if (n >= sizeof(sa.sun_path))
        return err_set(e, PALE_INTERNAL, "a socket's path is too long");
    memcpy(sa.sun_path, path, n + 1);
    own_fd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_os(e, "make a socket");
    if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0) {
        if (errno == ENOENT || errno == ECONNREFUSED)
            return err_set(e, PALE_NOT_FOUND, "the box is not running");
        return errno == EAGAIN ? err_set(e, PALE_BUSY, "the box has too many requests waiting") : err_os(e, "reach the box's keeper");
    }
    return tether_take(loop, take_fd(&fd), use, owner, ret, e);
}

void tether_close(struct tether *l)
{
    if (!l || l->dead)
        return;
    if (!l->ended)
        loop_remove(l->loop, &l->source);
    close(l->source.fd);
    l->dead = true;
    if (!l->busy)
        release(l);
}

bool tether_put(struct tether *l, uint8_t type, const void *p, size_t n)
{
    uint8_t head[FRAME_HEAD];
    if (l->ended || l->dead || l->out.len + FRAME_HEAD + n > OUT_MAX)
        return false;
    frame_put_head(head, type, 0, (uint32_t)n);
    if (!buf_reserve(&l->out, FRAME_HEAD + n))
        return false;
    buf_add(&l->out, head, sizeof(head));
    buf_add(&l->out, p, n);
    return true;
}

bool tether_send(struct tether *l, uint8_t type, const void *p, size_t n)
{
    if (!tether_put(l, type, p, n))
        return false;
    /* One that has left is noticed where reading is. */
    (void)flush(l);
    set_events(l);
    return true;
}

bool tether_pass(struct tether *l, const void *p, size_t n)
{
    if (l->ended || l->dead || l->shut || l->out.len + n > OUT_MAX || !buf_reserve(&l->out, n))
        return false;
    buf_add(&l->out, p, n);
    (void)flush(l);
    set_events(l);
    return true;
}

void tether_shut(struct tether *l)
{
    if (l->ended || l->dead)
        return;
    l->shut = true;
    (void)flush(l);
}

size_t tether_unsent(const struct tether *l)
{
    return l->out.len;
}

void tether_pause(struct tether *l, bool on)
{
    if (l->paused == on || l->dead)
        return;
    l->paused = on;
    if (l->ended)
        return;
    if (on)
        return set_events(l);
    /* Frames that are here already must not wait for more to come: a socket that can be written to wakes us at once. It may have been
     * taken from the loop, when the other end left while nobody listened. */
    l->kicked = true;
    loop_remove(l->loop, &l->source);
    if (loop_add(l->loop, &l->source, EPOLLIN | EPOLLOUT, NULL) < 0)
        l->paused = true;
}
