/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the event loop: epoll, and timers in a sorted list (a keeper has a handful).
 *
 * One event is taken from the kernel at a time, so that a handler may remove and free any other source without leaving a
 * stale pointer in a batch. */
#include "base/loop.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"

/* Of waiting, in a row. */
#define FAILURES_MAX 100

int loop_open(struct loop *l, struct pale_err *e)
{
    *l = (struct loop){.epoll_fd = epoll_create1(EPOLL_CLOEXEC)};
    return l->epoll_fd < 0 ? err_os(e, "epoll_create1") : 0;
}

int loop_add(struct loop *l, struct loop_source *s, uint32_t events, struct pale_err *e)
{
    struct epoll_event ev = {.events = events, .data.ptr = s};
    s->events = events;
    return epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, s->fd, &ev) < 0 ? err_os(e, "watch descriptor") : 0;
}

void loop_want(struct loop *l, struct loop_source *s, uint32_t events)
{
    if (s->events == events)
        return;
    struct epoll_event ev = {.events = events, .data.ptr = s};
    if (epoll_ctl(l->epoll_fd, EPOLL_CTL_MOD, s->fd, &ev) == 0)
        s->events = events;
}

void loop_remove(struct loop *l, struct loop_source *s)
{
    epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, s->fd, NULL);
    s->events = 0;
}

void loop_arm(struct loop *l, struct loop_timer *t, int64_t due_ms)
{
    loop_disarm(l, t);
    struct loop_timer **at = &l->timers;
    while (*at && (*at)->due_ms <= due_ms)
        at = &(*at)->next;
    t->due_ms = due_ms;
    t->armed = true;
    t->next = *at;
    *at = t;
}

void loop_disarm(struct loop *l, struct loop_timer *t)
{
    if (!t->armed)
        return;
    for (struct loop_timer **at = &l->timers; *at; at = &(*at)->next)
        if (*at == t) {
            *at = t->next;
            break;
        }
    t->armed = false;
    t->next = NULL;
}

int loop_run(struct loop *l, struct pale_err *e)
{
    int failures = 0;
    while (!l->stop) {
        int64_t now = clock_ms();
        struct loop_timer *t = l->timers;
        if (t && t->due_ms <= now) {
            loop_disarm(l, t);
            t->fire(t);
            continue;
        }
        int64_t wait = t ? t->due_ms - now : -1;
        struct epoll_event ev;
        int n = epoll_wait(l->epoll_fd, &ev, 1, wait > 1000000 ? 1000000 : (int)wait);
        /* A kernel that is short of something for a moment must not end what the loop is for. */
        if (n < 0 && errno != EINTR && ++failures > FAILURES_MAX)
            return err_os(e, "epoll_wait");
        if (n >= 0)
            failures = 0;
        if (n == 1) {
            struct loop_source *s = ev.data.ptr;
            s->ready(s, ev.events);
        }
    }
    return 0;
}
