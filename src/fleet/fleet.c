/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the fleet: what the core decides by, and what it decided. */
#include "fleet/fleet.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"
#include "box/life.h"
#include "box/place.h"
#include "fleet/order.h"
#include "fleet/lookout.h"

#define LOOK_AGAIN_MS 40 /* at a folder that is no box yet; doubled … */
#define LOOKS_MAX 8      /* … so many times */

/* --- time --- */

static void arm(struct fleet *f)
{
    int64_t due = core_next_due(f->core);
    if (due < 0)
        loop_disarm(f->loop, &f->timer);
    else
        loop_arm(f->loop, &f->timer, due);
}

void fleet_settle(struct fleet *f)
{
    arm(f);
}

static void on_due(struct loop_timer *t)
{
    struct fleet *f = (struct fleet *)((char *)t - offsetof(struct fleet, timer));
    core_tick(f->core);
    arm(f);
}

static int64_t io_now(void *arg)
{
    (void)arg;
    return clock_ms();
}

static int64_t io_unix(void *arg)
{
    (void)arg;
    return (int64_t)clock_unix_ms();
}

static uint64_t io_chance(void *arg)
{
    uint64_t v = 0;
    (void)arg;
    (void)!getrandom(&v, sizeof(v), 0);
    return v;
}

static void *io_grow(void *arg, void *p, size_t n)
{
    (void)arg;
    return realloc(p, n);
}

/* --- rows --- */

static int io_put_terms(void *arg, const char *tenant, const char *name, const struct core_terms *t, struct pale_err *e)
{
    struct fleet *f = arg;
    struct registry_box b = {.tenant = tenant,
                             .name = name,
                             .key = t->key,
                             .made_unix_ms = t->made_unix_ms,
                             .expires_unix_ms = t->expires_unix_ms,
                             .idle_ms = t->idle_ms,
                             .born = t->born};
    memcpy(b.asked, t->asked, sizeof(b.asked));
    return registry_box_put(f->registry, &b, e);
}

static int io_drop_terms(void *arg, const char *tenant, const char *name, struct pale_err *e)
{
    struct fleet *f = arg;
    int r = registry_box_drop(f->registry, tenant, name, e);
    return r == -PALE_NOT_FOUND ? 0 : r;
}

struct each_terms {
    int (*fn)(void *fn_arg, const char *tenant, const char *name, const struct core_terms *t);
    void *arg;
};

static int give_terms(const struct registry_box *b, void *arg, struct pale_err *e)
{
    const struct each_terms *x = arg;
    struct core_terms t = {.made_unix_ms = b->made_unix_ms, .expires_unix_ms = b->expires_unix_ms, .idle_ms = b->idle_ms, .born = b->born};
    (void)e;
    snprintf(t.key, sizeof(t.key), "%s", b->key);
    memcpy(t.asked, b->asked, sizeof(t.asked));
    return x->fn(x->arg, b->tenant, b->name, &t);
}

static int io_each_terms(void *arg, int (*fn)(void *fn_arg, const char *tenant, const char *name, const struct core_terms *t), void *fn_arg,
                         struct pale_err *e)
{
    struct fleet *f = arg;
    struct each_terms x = {fn, fn_arg};
    return registry_box_each(f->registry, give_terms, &x, e);
}

/* --- the disk --- */

static void sight_of(const struct place *p, struct core_sight *ret)
{
    *ret = (struct core_sight){.project = p->project, .born = life_born(p)};
    memcpy(ret->tenant, p->tenant, sizeof(ret->tenant));
    memcpy(ret->name, p->name, sizeof(ret->name));
    memcpy(ret->id, p->id, sizeof(ret->id));
}

static int io_look(void *arg, const struct core_sight *which, struct core_sight *ret)
{
    struct place p;
    (void)arg;
    int r = which->project ? place_by_id(which->id, &p, NULL) : place_owned(which->tenant, which->name, &p, NULL);
    if (r < 0)
        return r == -PALE_NOT_FOUND ? 0 : r;
    sight_of(&p, ret);
    return ret->born ? 1 : 0;
}

/* A box that was not known. */
static void see(struct fleet *f, const struct place *p)
{
    struct core_sight s;
    sight_of(p, &s);
    if (!s.born)
        return;
    bool is_new = f->open && !core_by_id(f->core, p->id);
    if (core_seen(f->core, &s, NULL) == 0 && is_new)
        events_tell(&f->events, "box.made", p->id, p->tenant, p->name, "");
}

static int see_one(void *arg, const struct place *p)
{
    see(arg, p);
    return 0;
}

/* --- what appears and goes --- */

struct doubt {
    struct loop_timer timer;
    struct fleet *fleet;
    unsigned looks;
    char id[BOX_ID_LEN + 1];
};

/* Its policy is the last thing a box gets. */
static void look_again(struct loop_timer *t)
{
    struct doubt *d = (struct doubt *)((char *)t - offsetof(struct doubt, timer));
    struct fleet *f = d->fleet;
    struct place p;
    if (place_by_id(d->id, &p, NULL) == 0)
        see(f, &p);
    else if (++d->looks < LOOKS_MAX)
        return loop_arm(f->loop, t, clock_ms() + ((int64_t)LOOK_AGAIN_MS << d->looks));
    f->doubts--;
    free(d);
    arm(f);
}

static void appeared(struct fleet *f, const char *id)
{
    struct place p;
    if (place_by_id(id, &p, NULL) == 0)
        return see(f, &p);
    struct doubt *d = f->doubts < DOUBTS_MAX ? calloc(1, sizeof(*d)) : NULL;
    if (!d)
        return;
    *d = (struct doubt){.timer = {.fire = look_again}, .fleet = f};
    memcpy(d->id, id, BOX_ID_LEN);
    f->doubts++;
    loop_arm(f->loop, &d->timer, clock_ms() + LOOK_AGAIN_MS);
}

static void vanished(struct fleet *f, const char *id)
{
    const struct core_box *b = core_by_id(f->core, id);
    if (!b)
        return;
    events_tell(&f->events, "box.removed", id, b->tenant, b->name, "");
    core_unseen(f->core, id);
    lookout_drop(f, id);
}

void fleet_look(struct fleet *f, const char *id)
{
    struct place p;
    if (place_by_id(id, &p, NULL) == 0)
        see(f, &p);
}

/* A box that has got another name, or another place. */
static void renamed(struct fleet *f, const char *id)
{
    struct place p;
    const struct core_box *b = core_by_id(f->core, id);
    if (!b || place_by_id(id, &p, NULL) < 0 || strcmp(b->name, p.name) == 0)
        return;
    events_tell(&f->events, "box.removed", id, b->tenant, b->name, "");
    see(f, &p);
    events_tell(&f->events, "box.made", id, p.tenant, p.name, "");
}

static bool is_id(const char *s, size_t n)
{
    return n == BOX_ID_LEN && strspn(s, "0123456789abcdef") >= BOX_ID_LEN;
}

/* Happenings were lost: what is new, what is gone, and whose keeper came meanwhile. */
static void look_at_all(struct fleet *f)
{
    struct place p;
    char tenant[CORE_TENANT_MAX + 1] = "", name[BOX_NAME_MAX + 1] = "", id[BOX_ID_LEN + 1] = "";
    (void)!place_each_made(see_one, f, NULL);
    for (const struct core_box *b; (b = core_after(f->core, tenant, name, id));) {
        memcpy(tenant, b->tenant, sizeof(tenant));
        memcpy(name, b->name, sizeof(name));
        memcpy(id, b->id, sizeof(id));
        if (id[0] && place_by_id(id, &p, NULL) == -PALE_NOT_FOUND)
            vanished(f, id);
        else if (id[0])
            lookout_try(f, id);
    }
}

static void happened(struct fleet *f, const struct inotify_event *ev)
{
    char id[BOX_ID_LEN + 1] = "";
    size_t n = ev->len ? strnlen(ev->name, ev->len) : 0;
    if (ev->mask & IN_Q_OVERFLOW)
        look_at_all(f);
    if (ev->wd == f->boxes_wd && is_id(ev->name, n)) {
        memcpy(id, ev->name, BOX_ID_LEN);
        if (ev->mask & (IN_CREATE | IN_MOVED_TO))
            appeared(f, id);
        else if (ev->mask & IN_ATTRIB)
            renamed(f, id);
        else
            vanished(f, id);
    }
    /* A keeper's socket: "ID.sock". */
    if (ev->wd == f->runtime_wd && n == BOX_ID_LEN + 5 && strcmp(ev->name + BOX_ID_LEN, ".sock") == 0) {
        memcpy(id, ev->name, BOX_ID_LEN);
        if (!core_by_id(f->core, id))
            appeared(f, id);
        lookout_try(f, id);
    }
}

static void on_notify(struct loop_source *s, uint32_t events)
{
    struct fleet *f = (struct fleet *)((char *)s - offsetof(struct fleet, notify));
    _Alignas(struct inotify_event) char block[16384];
    (void)events;
    ssize_t n = read(s->fd, block, sizeof(block));
    for (ssize_t at = 0; at + (ssize_t)sizeof(struct inotify_event) <= n;) {
        const struct inotify_event *ev = (const void *)(block + at);
        at += (ssize_t)(sizeof(*ev) + ev->len);
        happened(f, ev);
    }
    arm(f);
}

static int open_notify(struct fleet *f, struct pale_err *e)
{
    char boxes[PATH_BYTES_MAX + 8];
    snprintf(boxes, sizeof(boxes), "%s/boxes", f->state_dir);
    if (mkdir(boxes, 0700) < 0 && errno != EEXIST) /* where no box was ever made */
        return err_os(e, "make folder %s", boxes);
    f->notify = (struct loop_source){.fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK), .ready = on_notify};
    if (f->notify.fd < 0)
        return err_os(e, "inotify_init1");
    f->boxes_wd = inotify_add_watch(f->notify.fd, boxes, IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB | IN_ONLYDIR);
    f->runtime_wd = inotify_add_watch(f->notify.fd, f->runtime_dir, IN_CREATE | IN_MOVED_TO | IN_ONLYDIR);
    if (f->boxes_wd < 0 || f->runtime_wd < 0)
        return err_os(e, "watch %s", f->boxes_wd < 0 ? boxes : f->runtime_dir);
    return loop_add(f->loop, &f->notify, EPOLLIN, e);
}

/* --- requests --- */

struct wait {
    fleet_done *done;
    void *arg;
    struct order_payload payload;
    struct order_change change;
    char *mem;
    char caller[CALLER_MAX + 1];
};

static void io_answer(void *arg, void *waiter, const struct core_answer *a)
{
    struct wait *w = waiter;
    (void)arg;
    w->done(w->arg, a);
    free(w->mem);
    free(w);
}

static struct wait *new_wait(const char *caller, fleet_done *done, void *arg)
{
    struct wait *w = calloc(1, sizeof(*w));
    if (w) {
        w->done = done;
        w->arg = arg;
        snprintf(w->caller, sizeof(w->caller), "%s", caller);
        return w;
    }
    done(arg, &(struct core_answer){.code = PALE_NO_MEMORY, .text = "out of memory"});
    return NULL;
}

void fleet_create(struct fleet *f, const struct fleet_order *o, fleet_done *done, void *arg)
{
    struct wait *w = new_wait(o->caller, done, arg);
    if (!w)
        return;
    size_t n = strlen(o->policy) + 1, m = strlen(o->sets) + 1;
    w->mem = malloc(n + m);
    if (!w->mem) {
        free(w);
        return done(arg, &(struct core_answer){.code = PALE_NO_MEMORY, .text = "out of memory"});
    }
    memcpy(w->mem, o->policy, n);
    memcpy(w->mem + n, o->sets, m);
    w->payload = (struct order_payload){.policy = w->mem, .sets = w->mem + n, .start = o->start, .by_hand = o->by_hand};
    struct core_order order = {.tenant = o->tenant,
                               .name = o->name,
                               .key = o->key,
                               .asked = o->asked,
                               .expires_unix_ms = o->expires_unix_ms,
                               .idle_ms = o->idle_ms,
                               .ensure = o->ensure,
                               .payload = &w->payload};
    f->counts.creates++;
    core_create(f->core, &order, w);
    arm(f);
}

void fleet_use(struct fleet *f, const char *id, const char *caller, fleet_done *done, void *arg)
{
    struct wait *w = new_wait(caller, done, arg);
    if (w)
        core_use(f->core, id, w);
    arm(f);
}

void fleet_stop(struct fleet *f, const char *id, const char *caller, fleet_done *done, void *arg)
{
    struct wait *w = new_wait(caller, done, arg);
    if (w)
        core_stop(f->core, id, w);
    arm(f);
}

void fleet_remove(struct fleet *f, const char *id, const char *caller, fleet_done *done, void *arg)
{
    struct wait *w = new_wait(caller, done, arg);
    f->counts.removes++;
    if (w)
        core_remove(f->core, id, w);
    arm(f);
}

void fleet_rename(struct fleet *f, const char *id, const char *name, const char *caller, fleet_done *done, void *arg)
{
    struct wait *w = new_wait(caller, done, arg);
    if (w)
        core_rename(f->core, id, name, w);
    arm(f);
}

void fleet_set_terms(struct fleet *f, const char *id, int64_t expires_unix_ms, int64_t idle_ms, fleet_done *done, void *arg)
{
    struct wait *w = new_wait("", done, arg);
    if (w)
        core_set_terms(f->core, id, expires_unix_ms, idle_ms, w);
    arm(f);
}

void fleet_change(struct fleet *f, const char *id, const struct order_change *x, const char *caller, fleet_done *done, void *arg)
{
    struct wait *w = new_wait(caller, done, arg);
    if (w && x->paths && !(w->mem = strdup(x->paths))) {
        free(w);
        return done(arg, &(struct core_answer){.code = PALE_NO_MEMORY, .text = "out of memory"});
    }
    if (w) {
        w->change = *x;
        w->change.paths = w->mem;
        core_change(f->core, id, &w->change, x->kind == DEED_FORK ? x->count : 0, w);
    }
    arm(f);
}

void fleet_await(struct fleet *f, const char *id, const char *caller, fleet_done *done, void *arg)
{
    struct wait *w = new_wait(caller, done, arg);
    if (w)
        core_await(f->core, id, w);
    arm(f);
}

/* --- deeds of the core --- */

static int io_order(void *arg, const struct core_deed *d, struct pale_err *e)
{
    const struct wait *w = d->waiter;
    return order_deed(arg, d, w ? w->caller : "paled", e);
}

static void io_link(void *arg, const char *id)
{
    lookout_want(arg, id);
}

/* --- the whole --- */

const char *fleet_state_name(const struct core_box *b)
{
    static const char *const names[CORE_STATE_COUNT] = {"making", "stopped", "starting", "ready", "stopping", "removing"};
    if (b->state == CORE_UP)
        return b->frozen ? "frozen" : b->jobs ? "running" : "ready";
    return names[b->state];
}

int fleet_open(struct fleet *f, struct loop *loop, struct registry *r, int steward_fd, int64_t save_after_ms, struct pale_err *e)
{
    *f = (struct fleet){.loop = loop, .registry = r, .steward_fd = steward_fd, .timer = {.fire = on_due}, .notify = {.fd = -1}};
    struct core_io io = {.arg = f,
                         .save_after_ms = save_after_ms,
                         .now_ms = io_now,
                         .unix_ms = io_unix,
                         .chance = io_chance,
                         .grow = io_grow,
                         .put_terms = io_put_terms,
                         .drop_terms = io_drop_terms,
                         .each_terms = io_each_terms,
                         .look = io_look,
                         .order = io_order,
                         .link = io_link,
                         .answer = io_answer};
    events_init(&f->events, (uint64_t)io_unix(NULL));
    lookout_init(f);
    int res = place_state_dir(f->state_dir, sizeof(f->state_dir), e);
    if (res == 0)
        res = daemon_state(f->state_dir, f->state, e);
    if (res == 0)
        res = place_runtime_dir(f->runtime_dir, sizeof(f->runtime_dir), e);
    f->core = core_new(&io);
    if (res == 0 && !f->core)
        res = err_nomem(e);
    /* Watched before it is scanned: what is made meanwhile is seen twice rather than not at all. */
    if (res == 0)
        res = open_notify(f, e);
    if (res == 0)
        res = core_start(f->core, e);
    if (res == 0)
        res = place_each_made(see_one, f, e);
    if (res < 0)
        return res;
    core_settle(f->core);
    f->open = true;
    arm(f);
    return 0;
}

void fleet_close(struct fleet *f)
{
    if (f->core)
        core_free(f->core);
    lookout_done(f);
    events_done(&f->events);
    own_close(&f->notify.fd);
}
