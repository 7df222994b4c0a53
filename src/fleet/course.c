/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what happens to a box: the queue of those who wait for it, its one deed, and what follows from that.
 *
 * How it works: whenever something has changed, course_run looks at the box and at the first in its queue, and does one thing:
 * answers him, or orders the deed he needs. While a deed is under way nothing else is done. So requests for one box take effect
 * in the order in which they came, and those that want the same share one deed. With nobody in the queue there is what time
 * brings: removal of what has expired, which goes before everybody, and stopping of what is idle. */
#include "fleet/course.h"

#include <assert.h>
#include <string.h>

#include "fleet/outcome.h"
#include "fleet/queue.h"
#include "fleet/terms.h"

bool course_is_busy(const struct box *b)
{
    return b->deed || b->linking || b->partner;
}

bool course_is_shown(const struct box *b)
{
    bool is_goal = b->partner && !b->deed; /* of a rename that is not done */
    return (b->there && !is_goal) || (b->deed && b->kind == CORE_MAKE);
}

static bool is_expired(const struct core *c, const struct box *b)
{
    return b->there && b->pub.terms.expires_unix_ms && course_unix(c) >= b->pub.terms.expires_unix_ms;
}

/* Is it being removed, or will it be before anything else? */
static bool is_leaving(const struct core *c, const struct box *b)
{
    if (is_expired(c, b) || (b->deed && b->kind == CORE_REMOVE))
        return true;
    for (const struct wait *w = b->head; w; w = w->next)
        if (w->kind == WAIT_REMOVE)
            return true;
    return false;
}

static void order(struct core *c, struct box *b, enum core_deed_kind kind, bool background)
{
    struct pale_err e = {0};
    struct core_deed d = {.number = ++c->deeds,
                          .kind = kind,
                          .tenant = b->pub.tenant,
                          .name = b->pub.name,
                          .id = b->pub.id,
                          .new_name = b->partner ? b->partner->pub.name : NULL,
                          .project = b->pub.project,
                          .only_idle = kind == CORE_STOP && background,
                          .born = b->pub.born,
                          .payload = kind == CORE_MAKE || (kind == CORE_CHANGE && !background) ? b->head->payload : NULL,
                          .waiter = background || !b->head ? NULL : b->head->waiter};
    roll_set_deed(&c->roll, b, d.number);
    b->kind = kind;
    b->background = background;
    b->deed_born = b->pub.born;
    b->fell = false;
    if (kind == CORE_CHANGE) {
        b->pub.changing = true;
        b->pub.was_up = b->up;
        b->makes = background ? 0 : b->head->more;
    }
    if (kind == CORE_CHANGE && background) {
        b->saved_ms = b->pub.quiet_since_ms;
        c->saves++;
    }
    if (c->io.order(c->io.arg, &d, &e) < 0) {
        if (e.code == PALE_OK)
            e.code = PALE_INTERNAL;
        if (kind == CORE_CHANGE && background) { /* it was not even begun */
            b->saved_ms = 0;
            terms_pause(c, &b->save_pause);
        }
        outcome_done(c, b, &e, "", "");
    }
}

/* --- making --- */

/* The box is there: is it what this request means? */
static void create_there(struct core *c, struct box *b, struct wait *w)
{
    const struct core_terms *t = &b->pub.terms;
    bool same = b->pub.has_terms && memcmp(t->asked, w->terms.asked, sizeof(t->asked)) == 0;
    bool key = *w->terms.key && strcmp(t->key, w->terms.key) == 0;
    if (key && !same)
        queue_refuse(c, b, w, PALE_BAD_INPUT, "the key %s was used for another request; a key belongs to one request", w->terms.key);
    else if (same && (key || w->ensure))
        queue_answer(c, b, w, NULL);
    else
        queue_refuse(c, b, w, PALE_EXISTS, "there is already a box %s", b->pub.name);
}

/* … for so many more. */
static bool has_room(const struct core *c, const char *tenant, size_t more)
{
    size_t all = 0, own = 0;
    for (size_t at = 0; at < c->roll.count[ROLL_NAME]; at++) {
        const struct box *b = c->roll.index[ROLL_NAME][at];
        if (!course_is_shown(b))
            continue;
        size_t n = 1 + (b->deed && b->kind == CORE_CHANGE ? b->makes : 0); /* with those it is about to make */
        all += n;
        own += strcmp(b->pub.tenant, tenant) == 0 ? n : 0;
    }
    return all + more <= c->io.boxes_max && own + more <= c->io.tenant_boxes_max;
}

/* Puts the row and orders the deed. The row may be there from a former try. */
static void make(struct core *c, struct box *b, struct wait *w, bool again)
{
    struct core_terms t = w->terms;
    struct core_sight s;
    int r = outcome_look(c, b, &s);
    if (r > 0) { /* somebody else was faster, and we have not been told yet */
        outcome_appear(c, b, &s);
        return;
    }
    if (r < 0) { /* after a doubtful end we could not tell whose it is */
        queue_refuse(c, b, w, PALE_OS, "cannot see whether there is a box %s already", w->name);
        return;
    }
    t.made_unix_ms = again ? b->pub.terms.made_unix_ms : course_unix(c);
    if (!has_room(c, w->tenant, 1)) {
        queue_refuse(c, b, w, PALE_LIMIT, "no room for box %s: there are as many as may be; remove one first", w->name);
        return;
    }
    if (t.expires_unix_ms && t.expires_unix_ms <= course_unix(c)) {
        queue_refuse(c, b, w, PALE_BAD_INPUT, "box %s would expire before it is made", w->name);
        return;
    }
    b->had_terms = b->pub.has_terms;
    b->before = b->pub.terms;
    b->made_again = again && terms_in_doubt(c, b);
    if (*t.key)
        terms_thin(c, w->tenant);
    struct pale_err e = {0};
    if (terms_put(c, b, &t, &e) < 0) {
        (void)err_prefix(&e, "make box %s", w->name);
        queue_answer(c, b, w, &e);
        return;
    }
    order(c, b, CORE_MAKE, false);
}

/* While it waited, its key may have come to another box, or this one may no longer have it: then it goes where it belongs. */
static bool is_astray(struct core *c, struct box *b, struct wait *w)
{
    struct box *holder = *w->terms.key ? roll_by_key(&c->roll, w->tenant, w->terms.key) : NULL;
    if (holder ? holder == b : strcmp(w->name, b->pub.name) == 0)
        return false;
    queue_unlink(b, w);
    course_create(c, w);
    return true;
}

/* The box is not there, and it is this request's turn. */
static void create_absent(struct core *c, struct box *b, struct wait *w)
{
    const struct core_terms *t = &b->pub.terms;
    bool own = b->pub.has_terms && terms_are_of(t, w);
    if (*t->key && strcmp(t->key, w->terms.key) == 0 && !own)
        queue_refuse(c, b, w, PALE_BAD_INPUT, "the key %s was used for another request; a key belongs to one request", w->terms.key);
    else if (own && t->born == 0)
        make(c, b, w, true);
    else if (terms_in_doubt(c, b))
        queue_refuse(c, b, w, PALE_BUSY, "an earlier request for box %s may still be under way; try again in a minute", b->pub.name);
    else if (own && *t->key)
        queue_refuse(c, b, w, PALE_GONE, "the box that was made with the key %s is gone; take another key to make one again", t->key);
    else
        make(c, b, w, false);
}

void course_create(struct core *c, struct wait *w)
{
    struct box *b = *w->terms.key ? roll_by_key(&c->roll, w->tenant, w->terms.key) : NULL;
    if (b && memcmp(b->pub.terms.asked, w->terms.asked, sizeof(w->terms.asked)) != 0) {
        queue_refuse(c, NULL, w, PALE_BAD_INPUT, "the key %s was used for another request; a key belongs to one request", w->terms.key);
        return;
    }
    if (!b)
        b = roll_by_name(&c->roll, w->tenant, w->name);
    if (!b)
        b = roll_add(&c->roll, &c->io, w->tenant, w->name, NULL);
    if (!b) {
        struct pale_err e;
        (void)err_nomem(&e);
        queue_answer(c, NULL, w, &e);
    } else if (b->there && !is_leaving(c, b) && !b->partner && !(b->deed && b->kind == CORE_MAKE)) {
        create_there(c, b, w);
    } else
        course_ask(c, b, w);
}

void course_ask(struct core *c, struct box *b, struct wait *w)
{
    if (b->waits >= CORE_WAITERS_MAX) {
        queue_refuse(c, NULL, w, PALE_LIMIT, "too many requests wait for box %s already", b->pub.name);
        return;
    }
    bool leaving = is_leaving(c, b);
    w->born = b->pub.born;
    if (leaving && w->kind == WAIT_REMOVE)
        queue_insert_removal(b, w);
    else if (leaving && w->kind != WAIT_CREATE)
        queue_refuse(c, NULL, w, PALE_NOT_FOUND, "box %s is being removed", b->pub.name);
    else
        queue_append(b, w);
    course_run(c, b);
}

/* --- renaming, terms --- */

static void rename_to(struct core *c, struct box *b, struct wait *w)
{
    struct core_terms t = b->pub.terms;
    struct box *to = roll_by_name(&c->roll, b->pub.tenant, w->name);
    struct core_sight s;
    struct pale_err e = {0};
    if (b->pub.project)
        (void)err_set(&e, PALE_UNSUPPORTED, "box %s belongs to a project; it has its name from its folder", b->pub.name);
    else if (to == b)
        e.code = PALE_OK; /* it has that name */
    else if (b->up || !b->pub.born)
        (void)err_set(&e, PALE_CONFLICT, "box %s is up; stop it to rename it", b->pub.name);
    else if (b->made_again && terms_in_doubt(c, b))
        (void)err_set(&e, PALE_BUSY, "an earlier request to make box %s may still be under way; try again in a minute", b->pub.name);
    else if (to && to->there)
        (void)err_set(&e, PALE_EXISTS, "there is already a box %s", w->name);
    else if (to && (course_is_busy(to) || to->head || terms_in_doubt(c, to)))
        (void)err_set(&e, PALE_BUSY, "an earlier request for box %s may still be under way; try again in a minute", w->name);
    else if (!to && !(to = roll_add(&c->roll, &c->io, b->pub.tenant, w->name, NULL)))
        (void)err_nomem(&e);
    else if (outcome_look(c, to, &s) != 0) /* it will be told */
        (void)err_set(&e, PALE_EXISTS, "there is already a box %s, or nobody can see whether there is", w->name);
    if (e.code != PALE_OK || !to || to == b) {
        queue_answer(c, b, w, e.code != PALE_OK ? &e : NULL);
        if (to && to != b)
            course_run(c, to);
        return;
    }
    /* Both names have the row until it is known under which the box is. */
    to->had_terms = to->pub.has_terms;
    to->before = to->pub.terms;
    t.born = b->pub.born;
    if (terms_put(c, to, &t, &e) < 0) {
        (void)err_prefix(&e, "rename box %s", b->pub.name);
        queue_answer(c, b, w, &e);
        course_run(c, to);
        return;
    }
    b->partner = to;
    to->partner = b;
    order(c, b, CORE_RENAME, false);
}

static void change_terms(struct core *c, struct box *b, struct wait *w)
{
    struct core_terms t = b->pub.terms;
    struct pale_err e = {0};
    t.expires_unix_ms = w->terms.expires_unix_ms;
    t.idle_ms = w->terms.idle_ms;
    t.born = b->pub.born;
    if (!b->pub.has_terms)
        t.made_unix_ms = course_unix(c);
    if (b->pub.project)
        (void)err_set(&e, PALE_UNSUPPORTED, "box %s belongs to a project, and those have no terms", b->pub.name);
    else if (t.expires_unix_ms && t.expires_unix_ms <= course_unix(c))
        (void)err_set(&e, PALE_BAD_INPUT, "box %s cannot expire in the past; remove it instead", b->pub.name);
    else if (terms_has_twin(c, b, b->pub.born))
        (void)err_set(&e, PALE_BUSY, "box %s may be getting another name; try again in a minute", b->pub.name);
    else if (terms_put(c, b, &t, &e) < 0)
        (void)err_prefix(&e, "change the terms of box %s", b->pub.name);
    queue_answer(c, b, w, e.code != PALE_OK ? &e : NULL);
}

/* --- what is next --- */

static int64_t idle_at(const struct box *b)
{
    bool can = b->there && b->up && b->pub.jobs == 0 && b->pub.terms.idle_ms > 0;
    return can ? b->pub.quiet_since_ms + b->pub.terms.idle_ms : -1;
}

/* A box that nobody uses is kept as it is, once for each time that it falls idle. */
static int64_t save_at(const struct core *c, const struct box *b)
{
    bool can = c->io.save_after_ms > 0 && b->there && b->up && b->pub.jobs == 0 && b->saved_ms != b->pub.quiet_since_ms;
    int64_t at = b->pub.quiet_since_ms + c->io.save_after_ms;
    return !can ? -1 : at > b->save_pause.until_ms ? at : b->save_pause.until_ms;
}

/* Nobody waits for the box: true if time has brought something. */
static bool step_alone(struct core *c, struct box *b)
{
    int64_t now = course_now(c), idle = idle_at(b), save = save_at(c, b);
    if (idle >= 0 && now >= idle && now >= b->idle_pause.until_ms)
        order(c, b, CORE_STOP, true);
    else if (save < 0 || now < save)
        return false;
    else if (b->pub.frozen) /* it is as somebody wants it */
        b->saved_ms = b->pub.quiet_since_ms;
    else if (c->saves >= CORE_SAVES_MAX)
        terms_pause(c, &b->save_pause);
    else
        order(c, b, CORE_CHANGE, true);
    return true;
}

static void change(struct core *c, struct box *b, struct wait *w)
{
    if (w->more && !has_room(c, b->pub.tenant, w->more))
        queue_refuse(c, b, w, PALE_LIMIT, "no room for forks of box %s: there would be more than may be; remove some first", b->pub.name);
    else
        order(c, b, CORE_CHANGE, false);
}

/* The box has expired: true if something was done. */
static bool step_expired(struct core *c, struct box *b)
{
    struct wait *w = b->head;
    bool asked = w && w->kind == WAIT_REMOVE;
    if (asked || course_now(c) >= b->remove_pause.until_ms)
        order(c, b, CORE_REMOVE, !asked);
    else if (w && w->kind == WAIT_CREATE)
        queue_refuse(c, b, w, PALE_BUSY, "the box %s of before has expired and could not be removed yet; try again later", b->pub.name);
    else if (w)
        queue_refuse(c, b, w, PALE_NOT_FOUND, "box %s has expired", b->pub.name);
    else
        return false;
    return true;
}

static bool step_absent(struct core *c, struct box *b)
{
    struct wait *w = b->head;
    if (w && w->kind == WAIT_CREATE) {
        if (!is_astray(c, b, w))
            create_absent(c, b, w);
        return true;
    }
    if (!w)
        terms_weed(c, b);
    else if (w->kind == WAIT_REMOVE && terms_has_twin(c, b, w->born))
        queue_refuse(c, b, w, PALE_BUSY, QUEUE_MOVING, b->pub.name);
    else if (w->kind == WAIT_REMOVE)
        queue_answer(c, b, w, NULL);
    else
        queue_refuse(c, b, w, PALE_NOT_FOUND, "box %s is gone", b->pub.name);
    return w != NULL;
}

/* It is there by a deed's word alone, because nobody could look at the disk: true if something was done. */
static bool step_unseen(struct core *c, struct box *b)
{
    struct core_sight s;
    if (b->pub.born || course_now(c) < b->look_pause.until_ms)
        return false;
    int r = outcome_look(c, b, &s);
    if (r > 0)
        outcome_appear(c, b, &s);
    else if (r == 0)
        outcome_vanish(c, b);
    else
        terms_pause(c, &b->look_pause);
    return r >= 0;
}

static bool step_there(struct core *c, struct box *b)
{
    struct wait *w = b->head;
    if (step_unseen(c, b))
        return true;
    if (is_expired(c, b))
        return step_expired(c, b);
    if (!w)
        return step_alone(c, b);
    if (w->kind != WAIT_CREATE && !queue_is_meant(w, b->pub.born))
        return step_absent(c, b);
    switch (w->kind) {
    case WAIT_CREATE:
        if (!is_astray(c, b, w))
            create_there(c, b, w);
        break;
    case WAIT_USE:
        if (!b->up) {
            order(c, b, CORE_START, false);
            break;
        }
        b->pub.quiet_since_ms = course_now(c);
        queue_answer(c, b, w, NULL);
        break;
    case WAIT_STOP:
        if (b->up) {
            order(c, b, CORE_STOP, false);
            break;
        }
        queue_answer(c, b, w, NULL);
        break;
    case WAIT_REMOVE:
        order(c, b, CORE_REMOVE, false);
        break;
    case WAIT_RENAME:
        rename_to(c, b, w);
        break;
    case WAIT_TERMS:
        change_terms(c, b, w);
        break;
    case WAIT_CHANGE:
        change(c, b, w);
        break;
    case WAIT_STILL:
        queue_answer(c, b, w, NULL);
        break;
    }
    return true;
}

static int64_t sooner(int64_t a, int64_t b)
{
    return a < 0 || (b >= 0 && b < a) ? b : a;
}

static void schedule(struct core *c, struct box *b)
{
    int64_t due[ROLL_CLOCKS] = {-1, -1};
    if (c->settled && !course_is_busy(b)) {
        if (b->dirty)
            due[ROLL_MONOTONIC] = b->row_pause.until_ms;
        if (b->there && !b->pub.born)
            due[ROLL_MONOTONIC] = sooner(due[ROLL_MONOTONIC], b->look_pause.until_ms);
        bool expired = is_expired(c, b);
        int64_t idle = expired ? -1 : idle_at(b);
        int64_t save = expired ? -1 : save_at(c, b);
        if (expired)
            due[ROLL_MONOTONIC] = sooner(due[ROLL_MONOTONIC], b->remove_pause.until_ms);
        else if (b->there && b->pub.terms.expires_unix_ms)
            due[ROLL_UNIX] = b->pub.terms.expires_unix_ms;
        if (idle >= 0)
            due[ROLL_MONOTONIC] = sooner(due[ROLL_MONOTONIC], idle > b->idle_pause.until_ms ? idle : b->idle_pause.until_ms);
        if (save >= 0)
            due[ROLL_MONOTONIC] = sooner(due[ROLL_MONOTONIC], save);
        if (!b->there && terms_in_doubt(c, b))
            due[ROLL_MONOTONIC] = sooner(due[ROLL_MONOTONIC], b->doubt_ms > c->doubt_ms ? b->doubt_ms : c->doubt_ms);
        else if (!b->there && b->pub.has_terms)
            due[ROLL_UNIX] = b->pub.terms.made_unix_ms + CORE_KEY_KEEP_MS;
    }
    for (int i = 0; i < ROLL_CLOCKS; i++)
        roll_set_due(&c->roll, b, i, due[i]);
}

enum core_state course_state(const struct core *c, const struct box *b)
{
    static const enum core_state DURING[] = {CORE_MAKING, CORE_STARTING, CORE_STOPPING, CORE_REMOVING, CORE_DOWN, CORE_DOWN};
    static_assert(sizeof(DURING) / sizeof(DURING[0]) == CORE_DEED_KINDS, "each deed has its state");
    if (b->pub.changing) /* which does not end it */
        return b->pub.was_up ? CORE_UP : CORE_DOWN;
    if (b->deed)
        return DURING[b->kind];
    if (b->started)
        return CORE_STARTING;
    return is_expired(c, b) ? CORE_REMOVING : b->up ? CORE_UP : CORE_DOWN;
}

/* While the box is made or renamed, whose row it is will be seen at the end of that. */
static void keep_row(struct core *c, struct box *b)
{
    if (b->there && !b->partner && !(b->deed && b->kind == CORE_MAKE))
        terms_bind(c, b, false);
}

void course_run(struct core *c, struct box *b)
{
    if (c->settled && b->dirty && !course_is_busy(b) && course_now(c) >= b->row_pause.until_ms)
        terms_sync(c, b);
    bool more = c->settled;
    b->held++;
    if (more) /* before all are seen, a row that is not this one's may be that of one that has its name no more */
        keep_row(c, b);
    while (more && !course_is_busy(b)) {
        keep_row(c, b);
        more = b->there ? step_there(c, b) : step_absent(c, b);
    }
    b->pub.state = course_state(c, b);
    b->held--;
    if (!b->held && !b->there && !b->pub.has_terms && !b->dirty && !b->head && !course_is_busy(b))
        roll_drop(&c->roll, b);
    else
        schedule(c, b);
}
