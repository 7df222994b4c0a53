/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the way into the core: requests, happenings, time, looking up. */
#include "fleet/core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "fleet/outcome.h"
#include "fleet/queue.h"
#include "fleet/terms.h"

struct core *core_new(const struct core_io *io)
{
    struct core *c = io->grow(io->arg, NULL, sizeof(*c));
    if (!c)
        return NULL;
    memset(c, 0, sizeof(*c));
    c->io = *io;
    if (!c->io.boxes_max || c->io.boxes_max > CORE_BOXES_MAX)
        c->io.boxes_max = CORE_BOXES_MAX;
    if (!c->io.tenant_boxes_max || c->io.tenant_boxes_max > CORE_TENANT_BOXES_MAX)
        c->io.tenant_boxes_max = CORE_TENANT_BOXES_MAX;
    return c;
}

/* Hands out the answers. Whoever gets one may ask again at once: that answer comes after those before it. */
static void deliver(struct core *c)
{
    if (c->delivering)
        return;
    c->delivering = true;
    for (struct wait *w; (w = c->out);) {
        c->out = w->next;
        if (!c->out)
            c->out_last = NULL;
        struct core_answer a = {w->err.code, w->err.text, w->has_box ? &w->box : NULL, w->told ? w->told : ""};
        c->waits--;
        c->io.answer(c->io.arg, w->waiter, &a);
        free(w->told);
        free(w);
    }
    c->delivering = false;
}

void core_free(struct core *c)
{
    struct pale_err e;
    if (!c)
        return;
    (void)err_set(&e, PALE_GONE, "the daemon is ending; what was begun goes on");
    c->settled = false; /* who is told so and asks again gets an answer of the same kind */
    for (size_t i = 0; i < c->roll.count[ROLL_NAME]; i++)
        while (c->roll.index[ROLL_NAME][i]->head)
            queue_answer(c, c->roll.index[ROLL_NAME][i], c->roll.index[ROLL_NAME][i]->head, &e);
    deliver(c);
    roll_done(&c->roll);
    free(c);
}

/* --- the beginning --- */

static int take_row(void *arg, const char *tenant, const char *name, const struct core_terms *t)
{
    struct core *c = arg;
    struct box *b = roll_by_name(&c->roll, tenant, name);
    if (!b)
        b = roll_add(&c->roll, &c->io, tenant, name, NULL);
    if (!b)
        return -PALE_NO_MEMORY;
    roll_set_terms(&c->roll, b, t);
    return 0;
}

int core_start(struct core *c, struct pale_err *e)
{
    int r = c->io.each_terms(c->io.arg, take_row, c, e);
    return r == -PALE_NO_MEMORY ? err_nomem(e) : r;
}

static void run_all(struct core *c)
{
    /* Backwards, because a box may be forgotten by this. */
    for (size_t i = c->roll.count[ROLL_NAME]; i > 0; i--)
        course_run(c, c->roll.index[ROLL_NAME][i - 1]);
    deliver(c);
}

void core_settle(struct core *c)
{
    c->settled = true;
    c->doubt_ms = course_now(c) + CORE_DOUBT_MS;
    run_all(c);
}

void core_alone(struct core *c)
{
    c->doubt_ms = 0;
    run_all(c);
}

/* --- requests --- */

static void answer_now(struct core *c, void *waiter, enum pale_code code, const char *text)
{
    struct core_answer a = {code, text, NULL, ""};
    c->io.answer(c->io.arg, waiter, &a);
}

/* A place to wait; NULL after it has answered that there is none. */
static struct wait *new_wait(struct core *c, enum wait_kind kind, void *waiter)
{
    struct wait *w = NULL;
    if (!c->settled) {
        answer_now(c, waiter, PALE_BUSY, "the daemon is just starting or ending; try again");
        return NULL;
    }
    if (c->waits >= CORE_REQUESTS_MAX) {
        answer_now(c, waiter, PALE_LIMIT, "too many requests are under way; try again later");
        return NULL;
    }
    w = c->io.grow(c->io.arg, NULL, sizeof(*w));
    if (!w) {
        answer_now(c, waiter, PALE_NO_MEMORY, "out of memory");
        return NULL;
    }
    memset(w, 0, sizeof(*w));
    w->kind = kind;
    w->waiter = waiter;
    c->waits++;
    return w;
}

static bool is_span(int64_t idle_ms, int64_t expires_unix_ms)
{
    return idle_ms >= 0 && idle_ms <= CORE_IDLE_MAX_MS && expires_unix_ms >= 0;
}

void core_create(struct core *c, const struct core_order *o, void *waiter)
{
    if (!path_is_box_name(o->name) || (*o->tenant && !path_is_box_name(o->tenant)) || strlen(o->key) > CORE_KEY_MAX ||
        !is_span(o->idle_ms, o->expires_unix_ms)) {
        answer_now(c, waiter, PALE_BAD_INPUT, "a name, key or time of the new box is none");
        return;
    }
    struct wait *w = new_wait(c, WAIT_CREATE, waiter);
    if (!w)
        return;
    w->ensure = o->ensure;
    w->payload = o->payload;
    snprintf(w->tenant, sizeof(w->tenant), "%s", o->tenant);
    snprintf(w->name, sizeof(w->name), "%s", o->name);
    snprintf(w->terms.key, sizeof(w->terms.key), "%s", o->key);
    memcpy(w->terms.asked, o->asked, sizeof(w->terms.asked));
    w->terms.expires_unix_ms = o->expires_unix_ms;
    w->terms.idle_ms = o->idle_ms;
    course_create(c, w);
    deliver(c);
}

/* The box, and a place to wait for it; NULL after it has answered. */
static struct wait *ask(struct core *c, enum wait_kind kind, const char *id, void *waiter, struct box **ret_b)
{
    *ret_b = roll_by_id(&c->roll, id);
    if (c->settled && (!*ret_b || !(*ret_b)->there)) {
        answer_now(c, waiter, PALE_NOT_FOUND, "there is no such box");
        return NULL;
    }
    return new_wait(c, kind, waiter);
}

static void ask_plain(struct core *c, enum wait_kind kind, const char *id, void *waiter)
{
    struct box *b;
    struct wait *w = ask(c, kind, id, waiter, &b);
    if (w)
        course_ask(c, b, w);
    deliver(c);
}

void core_use(struct core *c, const char *id, void *waiter)
{
    ask_plain(c, WAIT_USE, id, waiter);
}

void core_stop(struct core *c, const char *id, void *waiter)
{
    ask_plain(c, WAIT_STOP, id, waiter);
}

void core_remove(struct core *c, const char *id, void *waiter)
{
    ask_plain(c, WAIT_REMOVE, id, waiter);
}

void core_await(struct core *c, const char *id, void *waiter)
{
    ask_plain(c, WAIT_STILL, id, waiter);
}

void core_change(struct core *c, const char *id, void *payload, unsigned more, void *waiter)
{
    struct box *b;
    struct wait *w = ask(c, WAIT_CHANGE, id, waiter, &b);
    if (w) {
        w->payload = payload;
        w->more = more;
        course_ask(c, b, w);
    }
    deliver(c);
}

void core_rename(struct core *c, const char *id, const char *name, void *waiter)
{
    struct box *b;
    if (!path_is_box_name(name)) {
        answer_now(c, waiter, PALE_BAD_INPUT, "a box's name is letters a-z, digits and '-', at most 63");
        return;
    }
    struct wait *w = ask(c, WAIT_RENAME, id, waiter, &b);
    if (!w)
        return;
    snprintf(w->name, sizeof(w->name), "%s", name);
    course_ask(c, b, w);
    deliver(c);
}

void core_set_terms(struct core *c, const char *id, int64_t expires_unix_ms, int64_t idle_ms, void *waiter)
{
    struct box *b;
    if (!is_span(idle_ms, expires_unix_ms)) {
        answer_now(c, waiter, PALE_BAD_INPUT, "a time of the box is none");
        return;
    }
    struct wait *w = ask(c, WAIT_TERMS, id, waiter, &b);
    if (!w)
        return;
    w->terms.expires_unix_ms = expires_unix_ms;
    w->terms.idle_ms = idle_ms;
    course_ask(c, b, w);
    deliver(c);
}

/* --- happenings --- */

void core_deed_done(struct core *c, uint64_t number, enum pale_code code, const char *text, const char *id)
{
    struct box *b = roll_by_deed(&c->roll, number);
    struct pale_err how = {0};
    if (!b)
        return;
    if (code != PALE_OK)
        (void)err_set(&how, code, "%s", text);
    outcome_done(c, b, &how, id, text);
    course_run(c, b);
    deliver(c);
}

int core_seen(struct core *c, const struct core_sight *s, struct pale_err *e)
{
    struct box *other = roll_by_id(&c->roll, s->id);
    struct box *b = s->project ? other : roll_by_name(&c->roll, s->tenant, s->name);
    if (!b && c->roll.count[ROLL_NAME] >= ROLL_MAX)
        return err_set(e, PALE_LIMIT, "there are more boxes than %u", CORE_BOXES_MAX);
    if (!b)
        b = roll_add(&c->roll, &c->io, s->tenant, s->name, s->project ? s->id : NULL);
    if (!b)
        return err_nomem(e);
    b->held++;
    terms_follow(c, b, s->born);
    if (other && other != b) { /* it had another name before, or we were told nothing of its end */
        outcome_vanish(c, other);
        course_run(c, other);
    }
    b->held--;
    outcome_appear(c, b, s);
    course_run(c, b);
    deliver(c);
    return 0;
}

void core_unseen(struct core *c, const char *id)
{
    struct box *b = roll_by_id(&c->roll, id);
    if (!b)
        return;
    outcome_vanish(c, b);
    course_run(c, b);
    deliver(c);
}

void core_up(struct core *c, const char *id, unsigned running)
{
    struct box *b = roll_by_id(&c->roll, id);
    if (!b)
        return;
    bool is_back = b->pub.changing && b->pub.was_up; /* as quiet as before */
    bool was_busy = b->up && b->pub.jobs;
    if (!b->up)
        b->pub.frozen = false;
    b->up = true;
    b->pub.jobs = running;
    if (!is_back || running || was_busy)
        b->pub.quiet_since_ms = course_now(c);
    b->pub.was_up = b->pub.changing;
    outcome_linked(c, b, true);
    course_run(c, b);
    deliver(c);
}

void core_down(struct core *c, const char *id)
{
    struct box *b = roll_by_id(&c->roll, id);
    if (!b)
        return;
    b->up = b->pub.frozen = false;
    b->fell = true;
    b->pub.jobs = 0;
    outcome_linked(c, b, false);
    course_run(c, b);
    deliver(c);
}

void core_jobs(struct core *c, const char *id, unsigned running)
{
    struct box *b = roll_by_id(&c->roll, id);
    if (!b || !b->up)
        return;
    b->pub.jobs = running;
    core_used(c, id);
}

void core_frozen(struct core *c, const char *id, bool frozen)
{
    struct box *b = roll_by_id(&c->roll, id);
    if (b)
        b->pub.frozen = b->up && frozen;
}

void core_used(struct core *c, const char *id)
{
    struct box *b = roll_by_id(&c->roll, id);
    if (!b)
        return;
    b->pub.quiet_since_ms = course_now(c);
    course_run(c, b);
    deliver(c);
}

/* --- time --- */

/* The box that fell due first, if one has. */
static struct box *due_now(struct core *c)
{
    struct box *b = roll_soonest(&c->roll, ROLL_MONOTONIC);
    if (b && b->due[ROLL_MONOTONIC] <= course_now(c))
        return b;
    b = roll_soonest(&c->roll, ROLL_UNIX);
    return b && b->due[ROLL_UNIX] <= course_unix(c) ? b : NULL;
}

void core_tick(struct core *c)
{
    c->ticks++;
    for (struct box *b; (b = due_now(c)) && b->ticked != c->ticks;) {
        b->ticked = c->ticks;
        course_run(c, b);
    }
    deliver(c);
}

int64_t core_next_due(struct core *c)
{
    const struct box *m = roll_soonest(&c->roll, ROLL_MONOTONIC), *u = roll_soonest(&c->roll, ROLL_UNIX);
    int64_t due = m ? m->due[ROLL_MONOTONIC] : -1;
    if (!u)
        return due;
    int64_t now = course_now(c), wall = course_unix(c), away = u->due[ROLL_UNIX] - wall;
    away = away < 0 ? 0 : away > INT64_MAX - now ? INT64_MAX - now : away;
    return due < 0 || now + away < due ? now + away : due;
}

/* --- looking up --- */

const struct core_box *core_find(struct core *c, const char *tenant, const char *name_or_id)
{
    const struct box *b = roll_by_name(&c->roll, tenant, name_or_id);
    if (!b || !course_is_shown(b))
        b = roll_by_id(&c->roll, name_or_id);
    return b && course_is_shown(b) && strcmp(b->pub.tenant, tenant) == 0 ? &b->pub : NULL;
}

const struct core_box *core_by_id(struct core *c, const char *id)
{
    const struct box *b = roll_by_id(&c->roll, id);
    return b && course_is_shown(b) ? &b->pub : NULL;
}

const struct core_box *core_after(struct core *c, const char *tenant, const char *name, const char *id)
{
    const struct box *own = roll_by_name(&c->roll, tenant, name);
    bool is_own = own && strcmp(own->pub.id, id) == 0; /* of one name, the box that is no project's is the first */
    for (size_t at = roll_from(&c->roll, tenant, name, true, is_own ? "" : id); at < c->roll.count[ROLL_NAME]; at++) {
        const struct box *b = c->roll.index[ROLL_NAME][at];
        bool is_it = b->pub.project && strcmp(b->pub.id, id) == 0;
        if (course_is_shown(b) && !is_it)
            return &b->pub;
    }
    return NULL;
}
