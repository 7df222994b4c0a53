/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what follows from a deed's end, and what is believed of the disk.
 *
 * How it works: a deed's word says how our attempt went; what is there says the disk, which is asked after each. The two together say
 * whether it was our box, our deed, and whether it may still happen. */
#include "fleet/outcome.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "fleet/queue.h"
#include "fleet/terms.h"

static struct core_sight which(const struct box *b)
{
    struct core_sight s = {.project = b->pub.project, .born = b->pub.born};
    memcpy(s.tenant, b->pub.tenant, sizeof(s.tenant));
    memcpy(s.name, b->pub.name, sizeof(s.name));
    memcpy(s.id, b->pub.id, sizeof(s.id));
    return s;
}

int outcome_look(struct core *c, const struct box *b, struct core_sight *ret)
{
    struct core_sight want = which(b);
    return c->io.look(c->io.arg, &want, ret);
}

/* Codes after which nobody knows whether it was done, or will be. */
static bool is_doubtful(enum pale_code code)
{
    return code == PALE_GONE || code == PALE_TIMEOUT;
}

/* --- the disk --- */

void outcome_vanish(struct core *c, struct box *b)
{
    b->there = b->up = b->linking = b->started = b->pub.frozen = b->pub.changing = false;
    b->saved_ms = 0;
    b->fell = true;
    b->pub.jobs = 0;
    b->pub.born = 0;
    b->idle_pause = b->remove_pause = b->look_pause = b->save_pause = (struct pause){0};
    if (!b->pub.project)
        roll_set_id(&c->roll, b, "");
}

void outcome_appear(struct core *c, struct box *b, const struct core_sight *s)
{
    if (b->there && b->pub.born == s->born && strcmp(b->pub.id, s->id) == 0)
        return;
    outcome_vanish(c, b);
    b->there = true;
    b->pub.born = s->born;
    b->pub.quiet_since_ms = course_now(c);
    if (!b->pub.project) {
        struct box *other = roll_by_id(&c->roll, s->id);
        if (other && !other->pub.project)
            roll_set_id(&c->roll, other, "");
        if (!other || !other->pub.project)
            roll_set_id(&c->roll, b, s->id);
    }
    b->linking = true; /* until then nobody knows whether it is up */
    c->io.link(c->io.arg, s->id);
}

/* --- deeds --- */

/* The deed did not find the box. If that is so, who waits for it learns it when it is his turn. */
static bool is_lost(struct core *c, struct box *b, const struct pale_err *how)
{
    struct core_sight s;
    if (how->code != PALE_NOT_FOUND)
        return false;
    int r = outcome_look(c, b, &s);
    if (r == 0)
        outcome_vanish(c, b);
    if (r > 0)
        outcome_appear(c, b, &s);
    return !b->there || b->pub.born != b->deed_born;
}

static void done_start(struct core *c, struct box *b, const struct pale_err *how)
{
    if (is_lost(c, b, how))
        return;
    if ((how->code == PALE_OK || how->code == PALE_EXISTS) && b->there && !b->up) {
        b->linking = b->started = true;
        c->io.link(c->io.arg, b->pub.id);
    } else if (how->code != PALE_OK && !b->up)
        queue_answer_front(c, b, WAIT_USE, how);
}

void outcome_linked(struct core *c, struct box *b, bool up)
{
    struct pale_err e;
    bool failed = b->linking && b->started && !up;
    b->linking = b->started = false;
    b->pub.changing = b->pub.changing && b->deed; /* until then it is not known how the box came out of it */
    if (!failed)
        return;
    (void)err_set(&e, PALE_GONE, "box %s was started and has ended at once; its audit log says why", b->pub.name);
    queue_answer_front(c, b, WAIT_USE, &e);
}

static void done_stop(struct core *c, struct box *b, const struct pale_err *how)
{
    if (is_lost(c, b, how))
        return;
    if (how->code == PALE_OK || how->code == PALE_NOT_FOUND) {
        /* If the link broke since, what is up now is another keeper, started by somebody else after our stop. */
        if (!b->fell) {
            b->up = b->pub.frozen = false;
            b->pub.jobs = 0;
        }
        b->idle_pause = (struct pause){0};
        if (!b->background && b->there && b->pub.born == b->deed_born)
            queue_answer_front(c, b, WAIT_STOP, NULL);
    } else if (b->up) {
        terms_pause(c, &b->idle_pause);
        if (!b->background)
            queue_answer_front(c, b, WAIT_STOP, how);
    }
}

static void done_remove(struct core *c, struct box *b, const struct pale_err *how)
{
    struct core_sight s;
    int r = outcome_look(c, b, &s);
    if (r < 0 && b->there && b->pub.born != b->deed_born) {
        s = which(b); /* as it was seen since */
        r = 1;
    }
    bool other = r > 0 && b->deed_born && s.born != b->deed_born;
    bool gone = how->code == PALE_OK || r == 0 || other || (r < 0 && how->code == PALE_NOT_FOUND);
    struct pale_err moving;
    if (gone && how->code != PALE_OK && terms_has_twin(c, b, b->deed_born)) {
        (void)err_set(&moving, PALE_BUSY, QUEUE_MOVING, b->pub.name);
        gone = false;
        how = &moving;
    }
    if (!gone) {
        terms_pause(c, &b->remove_pause);
        queue_answer_front(c, b, WAIT_REMOVE, how);
        if (r == 0)
            outcome_vanish(c, b);
        return;
    }
    if (b->pub.terms.born == b->deed_born)
        terms_bury(c, b);
    while (b->head && b->head->kind == WAIT_REMOVE && queue_is_meant(b->head, b->deed_born))
        queue_answer(c, b, b->head, NULL);
    /* What is there now was made by somebody else since, and may have been seen already. */
    if (!other || b->pub.born != s.born)
        outcome_vanish(c, b);
    if (r > 0)
        outcome_appear(c, b, &s);
}

/* The request at the front has failed, and so have those that are the same. */
static void fail_make(struct core *c, struct box *b, const struct pale_err *how)
{
    struct wait *first = b->head, *next;
    assert(first && first->kind == WAIT_CREATE);
    for (struct wait *w = first->next; w; w = next) {
        next = w->next;
        if (w->kind == WAIT_CREATE && *w->terms.key && terms_are_of(&w->terms, first))
            queue_answer(c, b, w, how);
    }
    queue_answer(c, b, first, how);
}

/* A box that was made may have been seen, and found to be down, before its keeper was there. */
static void look_for_keeper(struct core *c, struct box *b)
{
    if (!b->there || b->up || b->linking)
        return;
    b->linking = true;
    c->io.link(c->io.arg, b->pub.id);
}

static void done_make(struct core *c, struct box *b, const struct pale_err *how, const char *id)
{
    struct core_sight s = which(b);
    int r = outcome_look(c, b, &s);
    bool ok = how->code == PALE_OK, again = b->made_again && (how->code == PALE_EXISTS || how->code == PALE_BUSY);
    if (r < 0 && ok && !b->there) { /* the deed's word is all we have */
        snprintf(s.id, sizeof(s.id), "%s", id);
        s.born = 0;
        b->doubt_ms = course_now(c) + CORE_DOUBT_MS; /* whoever is seen first is it */
    }
    if (r > 0 || (r < 0 && ok && !b->there))
        outcome_appear(c, b, &s); /* as long as born is 0 the course will look again */
    else if (r == 0)
        outcome_vanish(c, b);
    if (ok)
        look_for_keeper(c, b);
    if (b->there && (ok || b->made_again || is_doubtful(how->code))) {
        terms_bind(c, b, true);
        queue_answer(c, b, b->head, NULL);
        return;
    }
    struct pale_err gone;
    (void)err_set(&gone, PALE_GONE, "box %s was made, and somebody has removed it since", b->pub.name);
    if (is_doubtful(how->code) || again)
        b->doubt_ms = course_now(c) + CORE_DOUBT_MS; /* the row stays, for what may come yet */
    else if (!b->made_again && !ok)
        terms_restore(c, b);
    else if (!b->made_again || !terms_in_doubt(c, b))
        terms_forget(c, b);
    fail_make(c, b, ok ? &gone : how);
}

/* The box has got its new name: who waits for the box follows it, who waits for the name stays. */
static void moved(struct core *c, struct box *from, struct box *to, const struct core_sight *s)
{
    struct wait *w = from->head, *next;
    outcome_appear(c, to, s);
    terms_bind(c, to, false);
    outcome_vanish(c, from);
    if (from->pub.terms.born == from->deed_born)
        terms_forget(c, from);
    assert(w && w->kind == WAIT_RENAME);
    queue_unlink(from, w);
    queue_answer(c, to, w, NULL);
    for (w = from->head; w; w = next) {
        next = w->next;
        if (w->kind != WAIT_CREATE) {
            queue_unlink(from, w);
            queue_append(to, w);
        }
    }
}

static void done_rename(struct core *c, struct box *b, const struct pale_err *how, const char *id)
{
    struct box *to = b->partner;
    struct core_sight old, new = which(to);
    int r_old = outcome_look(c, b, &old), r_new = outcome_look(c, to, &new);
    b->partner = to->partner = NULL;
    if (r_new < 0 && how->code == PALE_OK) {
        snprintf(new.id, sizeof(new.id), "%s", id);
        new.born = b->deed_born;
        r_new = 1;
    }
    if (r_new > 0 && new.born == b->deed_born) {
        moved(c, b, to, &new);
    } else {
        struct pale_err gone;
        (void)err_set(&gone, PALE_GONE, "box %s was renamed, and somebody has removed it since", b->pub.name);
        if (r_new == 0)
            outcome_vanish(c, to);
        if (r_new > 0)
            outcome_appear(c, to, &new);
        if (r_new <= 0 && is_doubtful(how->code))
            b->doubt_ms = to->doubt_ms = course_now(c) + CORE_DOUBT_MS; /* the row stays, for what may come yet */
        else
            terms_restore(c, to);
        if (r_old == 0)
            outcome_vanish(c, b);
        queue_answer(c, b, b->head, how->code == PALE_OK ? &gone : how);
    }
    if (r_old > 0)
        outcome_appear(c, b, &old);
    course_run(c, to);
}

/* What was told goes with the answer; without memory for it the answer goes alone. */
static char *keep_text(struct core *c, const char *text)
{
    size_t n = strlen(text) + 1;
    char *kept = c->io.grow(c->io.arg, NULL, n);
    if (kept)
        memcpy(kept, text, n);
    return kept;
}

static void done_change(struct core *c, struct box *b, const struct pale_err *how, const char *text)
{
    struct wait *w = b->background ? NULL : b->head;
    c->saves -= b->background;
    if (is_lost(c, b, how) || !b->there || (b->deed_born && b->pub.born != b->deed_born)) {
        b->pub.changing = false;
        return; /* who waits learns it when it is his turn */
    }
    if (how->code == PALE_OK)
        b->save_pause = (struct pause){0};
    /* The keeper we had a link to may have ended without our knowing yet; the one there is now is asked how the box stands. */
    b->linking = true;
    c->io.link(c->io.arg, b->pub.id);
    if (!w || w->kind != WAIT_CHANGE)
        return;
    if (how->code == PALE_OK)
        w->told = keep_text(c, text);
    queue_answer(c, b, w, how->code == PALE_OK ? NULL : how);
}

void outcome_done(struct core *c, struct box *b, const struct pale_err *how, const char *id, const char *text)
{
    roll_set_deed(&c->roll, b, 0);
    b->held++;
    switch (b->kind) {
    case CORE_MAKE:
        done_make(c, b, how, id);
        break;
    case CORE_START:
        done_start(c, b, how);
        break;
    case CORE_STOP:
        done_stop(c, b, how);
        break;
    case CORE_REMOVE:
        done_remove(c, b, how);
        break;
    case CORE_RENAME:
        done_rename(c, b, how, id);
        break;
    case CORE_CHANGE:
        done_change(c, b, how, text);
        break;
    case CORE_DEED_KINDS:
        break;
    }
    b->held--;
}
