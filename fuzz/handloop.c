/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the loop of the rigs. What it is given is checked, which the kernel would do. */
#include "handloop.h"

#include <assert.h>

#include "input.h"

#define FD_EPOLL 2999

struct handloop handloop;

int loop_open(struct loop *l, struct pale_err *e)
{
    (void)e;
    *l = (struct loop){.epoll_fd = FD_EPOLL};
    return 0;
}

UNSEEN static size_t at_of(const struct loop_source *s)
{
    size_t i = 0;
    while (i < handloop.count && handloop.sources[i] != s)
        i++;
    return i;
}

UNSEEN int loop_add(struct loop *l, struct loop_source *s, uint32_t events, struct pale_err *e)
{
    (void)l, (void)e;
    assert(handloop.count < HANDLOOP_MAX && s->fd >= 0);
    for (size_t i = 0; i < handloop.count; i++)
        assert(handloop.sources[i] != s && handloop.sources[i]->fd != s->fd);
    s->events = events;
    handloop.sources[handloop.count++] = s;
    return 0;
}

UNSEEN void loop_want(struct loop *l, struct loop_source *s, uint32_t events)
{
    (void)l;
    if (at_of(s) < handloop.count)
        s->events = events;
}

UNSEEN void loop_remove(struct loop *l, struct loop_source *s)
{
    (void)l;
    size_t i = at_of(s);
    if (i < handloop.count)
        handloop.sources[i] = handloop.sources[--handloop.count];
    s->events = 0;
}

UNSEEN void loop_disarm(struct loop *l, struct loop_timer *t)
{
    if (!t->armed)
        return;
    struct loop_timer **at = &l->timers;
    while (*at && *at != t)
        at = &(*at)->next;
    assert(*at == t);
    *at = t->next;
    t->armed = false;
    t->next = NULL;
}

UNSEEN void loop_arm(struct loop *l, struct loop_timer *t, int64_t due_ms)
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

int loop_run(struct loop *l, struct pale_err *e)
{
    (void)l;
    return err_set(e, PALE_UNSUPPORTED, "turned by hand");
}

UNSEEN bool handloop_turn(struct loop *l, int64_t now_ms, uint32_t (*ready)(const struct loop_source *s))
{
    struct loop_timer *t = l->timers;
    if (l->stop)
        return false;
    if (t && t->due_ms <= now_ms) {
        loop_disarm(l, t);
        t->fire(t);
        return true;
    }
    for (size_t i = 0; i < handloop.count; i++) {
        struct loop_source *s = handloop.sources[(handloop.next + i) % handloop.count];
        uint32_t events = ready(s);
        if (events) {
            handloop.next++;
            s->ready(s, events);
            return true;
        }
    }
    return false;
}
