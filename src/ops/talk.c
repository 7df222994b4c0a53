/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the way from a call to the keeper of its box. */
#include "ops/talk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/weak.h"
#include "box/life.h"

#define TRIES_MAX 5u
#define WAITS_MAX 100u /* for changes of layers, one after the other, each of which has ended a keeper before it heard us */
#define KNOCK_MS 20    /* … and for one of which the core knows nothing */

static bool sees(const struct caller *who, const struct core_box *b)
{
    if (weak_word("tokens"))
        return true;
    switch (who->scope) {
    case CALLER_OPERATOR:
        return true;
    case CALLER_TENANT:
        return strcmp(who->tenant, b->tenant) == 0;
    case CALLER_BOX:
        return who->born && who->born == b->born; /* which it keeps when it is renamed */
    }
    return false;
}

bool talk_sees(const struct caller *who, const struct core_box *b)
{
    return sees(who, b);
}

const struct core_box *talk_find(struct call *c)
{
    const char *which = call_param(c, "box");
    const struct core_box *b = core_find(c->world->fleet.core, c->who.tenant, which);
    /* An operator reaches tenants' boxes by their ids. */
    if (!b)
        b = core_by_id(c->world->fleet.core, which);
    if (b && b->id[0] && sees(&c->who, b))
        return b;
    /* Perhaps one of somebody else: whoever tries ids leaves a trace. */
    if (c->who.scope != CALLER_OPERATOR)
        c->trace = TRACE_ALWAYS;
    call_refuse(c, PALE_NOT_FOUND, "there is no such box; GET /v1/boxes lists them");
    return NULL;
}

static void uncount(struct talk *a)
{
    struct lookout *w = a->counted ? lookout_of(&a->call->world->fleet, a->box) : NULL;
    if (w && w->calls > 0)
        w->calls--;
    a->counted = false;
}

void talk_close(struct talk *a)
{
    tether_close(a->link);
    a->link = NULL;
    uncount(a);
}

static void let_go(struct call *c)
{
    struct talk *a = c->state;
    c->state = NULL;
    loop_disarm(&c->world->loop, &a->again);
    if (a->done)
        a->done(a);
    talk_close(a);
    buf_done(&a->request);
    free(a);
}

void *talk_new(struct call *c, size_t size)
{
    struct talk *a = calloc(1, size);
    if (!a) {
        call_refuse(c, PALE_NO_MEMORY, "out of memory");
        return NULL;
    }
    a->call = c;
    buf_init(&a->request, FRAME_PAYLOAD_MAX);
    c->state = a;
    c->left = let_go;
    return a;
}

/* Its layers are being changed: its keeper has ended, or will, and the next one answers as this one would. */
static bool is_changing(const struct talk *a)
{
    const struct core_box *b = core_by_id(a->call->world->fleet.core, a->box);
    return b && b->changing;
}

/* The same by somebody else, with the command line: a keeper has left word for the next one, which has not read it yet. */
static bool is_handed_over(const struct talk *a)
{
    struct place p;
    char path[PATH_BYTES_MAX + 16];
    if (place_by_id(a->box, &p, NULL) < 0)
        return false;
    snprintf(path, sizeof(path), "%s/" LIFE_HANDOVER, p.state);
    return access(path, F_OK) == 0;
}

static void use_again(struct talk *a);
static void knock_later(struct talk *a);

static void fail(struct talk *a, const struct pale_err *e)
{
    /* A keeper that was just ending has done nothing for us: the next one will. */
    bool again = is_changing(a) ? a->waits < WAITS_MAX : a->starts && a->tries < TRIES_MAX;
    if (!a->heard && again && e->code == PALE_GONE)
        return use_again(a);
    if (!a->heard && !a->starts && a->waits < WAITS_MAX && e->code == PALE_GONE && is_handed_over(a))
        return knock_later(a);
    if (a->failed)
        a->failed(a, e);
    else
        call_fail(a->call, e);
}

static void on_frame(struct tether *l, const struct frame *f)
{
    struct talk *a = l->owner;
    struct call *c = a->call;
    struct msg_error m;
    struct pale_err e;
    if (f->type != TELL_ERROR) {
        a->heard = true;
        call_hold(c);
        a->frame(a, f);
        return call_drop(c);
    }
    if (!msg_error_parse(f->data, f->len, &m) || m.code == 0 || m.code >= PALE_CODE_COUNT)
        err_set(&e, PALE_PROTOCOL, "the keeper sent an error that cannot be read");
    else
        err_set(&e, (enum pale_code)m.code, "%s", m.text);
    fail(a, &e);
}

static void on_gone(struct tether *l)
{
    struct talk *a = l->owner;
    struct pale_err e;
    if (a->gone)
        return a->gone(a);
    err_set(&e, PALE_GONE, "the box ended before it answered");
    fail(a, &e);
}

static void on_room(struct tether *l)
{
    struct talk *a = l->owner;
    struct call *c = a->call;
    call_hold(c);
    if (a->room)
        a->room(a);
    call_drop(c);
}

static void on_bytes(struct tether *l, const uint8_t *p, size_t n)
{
    struct talk *a = l->owner;
    struct call *c = a->call;
    a->heard = true;
    call_hold(c);
    a->bytes(a, p, n);
    call_drop(c);
}

void talk_room(struct call *c)
{
    struct talk *a = c->state;
    if (a && a->link)
        tether_pause(a->link, false);
}

void talk_taken(struct talk *a)
{
    a->call->port->want(a->call, true);
}

void talk_take(struct talk *a, void (*piece)(struct call *c, const void *p, size_t n, bool last))
{
    struct call *c = a->call;
    c->piece = piece;
    if (c->bytes_done)
        piece(c, "", 0, true);
    else
        c->port->want(c, true);
}

static const struct tether_use use = {.frame = on_frame, .gone = on_gone, .room = on_room};
static const struct tether_use raw_use = {.gone = on_gone, .room = on_room, .bytes = on_bytes};

bool talk_preface(struct tether *l, const char *caller, const char *input)
{
    uint8_t mem[128];
    struct record_writer w;
    record_start(&w, mem, sizeof(mem));
    msg_preface_write(&(struct msg_preface){.caller = caller, .input = input}, &w);
    return tether_put(l, ASK_PREFACE, mem, w.len);
}

/* What its client sends over a connection that is passed on comes after what we say of him. */
static bool send_request(struct talk *a)
{
    const struct caller *who = &a->call->who;
    bool bound = a->bytes && !(who->scope == CALLER_OPERATOR && (who->rights >> RIGHT_POLICY_WIDEN & 1));
    return talk_preface(a->link, call_caller(a->call), a->input) && (!bound || tether_put(a->link, ASK_BOUND, NULL, 0)) &&
           (a->bytes ? tether_pass(a->link, "", 0) : tether_send(a->link, a->type, a->request.data, a->request.len));
}

static void connect_now(struct talk *a)
{
    struct pale_err e;
    struct fleet *f = &a->call->world->fleet;
    struct lookout *w = lookout_of(f, a->box);
    if (w && w->calls >= TALKS_PER_BOX) {
        err_set(&e, PALE_BUSY, "the box has %u requests under way; try again in a moment", TALKS_PER_BOX);
        return fail(a, &e);
    }
    if (fleet_link(f, a->box, a->bytes ? &raw_use : &use, a, &a->link, &e) < 0) {
        if (e.code == PALE_NOT_FOUND && (a->starts || is_changing(a) || is_handed_over(a)))
            e.code = PALE_GONE; /* somebody else has stopped it, or it is on its way back */
        return fail(a, &e);
    }
    if (w) {
        w->calls++;
        a->counted = true;
    }
    core_used(f->core, a->box);
    if (!send_request(a)) {
        err_set(&e, PALE_GONE, "the box ended before it was asked");
        return fail(a, &e);
    }
    if (a->opened) {
        a->heard = true; /* what its client sends goes to this keeper: there is no beginning anew */
        a->opened(a);
    }
}

static void on_knock(struct loop_timer *t)
{
    struct talk *a = (struct talk *)((char *)t - offsetof(struct talk, again));
    struct call *c = a->call;
    call_hold(c);
    connect_now(a);
    call_drop(c);
}

static void knock_later(struct talk *a)
{
    a->waits++;
    talk_close(a);
    a->again.fire = on_knock;
    loop_arm(&a->call->world->loop, &a->again, clock_ms() + KNOCK_MS);
}

static void on_up(void *arg, const struct core_answer *answer)
{
    struct call *c = arg;
    struct talk *a = c->state;
    if (!c->gone && !c->answered && a) {
        if (answer->code != PALE_OK) {
            struct pale_err e;
            err_set(&e, answer->code, "%s", answer->text);
            fail(a, &e);
        } else
            connect_now(a);
    }
    call_drop(c);
}

/* Until the box is up, or, if it is not to be started for this, until nothing is under way with it. */
static void await(struct talk *a)
{
    struct call *c = a->call;
    call_hold(c);
    (a->starts ? fleet_use : fleet_await)(&c->world->fleet, a->box, call_caller(c), on_up, c);
}

static void use_again(struct talk *a)
{
    struct call *c = a->call;
    *(is_changing(a) ? &a->waits : &a->tries) += 1;
    talk_close(a);
    fleet_lost(&c->world->fleet, a->box);
    await(a);
}

void talk_open(struct talk *a, bool start)
{
    struct call *c = a->call;
    const struct core_box *b = talk_find(c);
    if (!b)
        return;
    memcpy(a->box, b->id, sizeof(a->box));
    a->starts = start;
    /* Whether its keeper is there is best known by knocking: one that was just adopted may not have told us yet. */
    if (b->state != CORE_MAKING && b->state != CORE_REMOVING && !b->changing)
        return connect_now(a);
    if (!start && !b->changing)
        return call_refuse(c, PALE_NOT_FOUND, "box %s is not running", b->name);
    await(a);
}

void talk_send(struct talk *a, uint8_t type, bool start)
{
    if (a->request.failed)
        return call_refuse(a->call, PALE_LIMIT, "the request is longer than a keeper takes");
    a->type = type;
    talk_open(a, start);
}
