/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the following of deeds that tell much. */
#include "ops/hearing.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/number.h"
#include "fleet/order.h"

static void end(struct world *w, const struct hearing_use *use, struct hearing *h)
{
    if (use->over)
        use->over(w);
    free(h);
}

static void on_left(struct call *c)
{
    struct hearing *h = c->state;
    c->state = NULL;
    if (h->order && h->use.goes_on) {
        h->call = NULL;
        return fleet_stream_pause(h->order, false);
    }
    if (h->order)
        fleet_stream_close(h->order);
    end(h->world, &h->use, h);
}

static void on_room(struct call *c)
{
    struct hearing *h = c->state;
    if (h && h->order)
        fleet_stream_pause(h->order, false);
}

/* Once the client is gone so is the hearing, which c->state says. */
static void begin(struct hearing *h)
{
    if (h->begun)
        return;
    h->begun = true;
    call_begin(h->call, h->use.type, "");
}

static void on_part(void *arg, const void *p, size_t n)
{
    struct hearing *h = arg;
    struct call *c = h->call;
    if (!c)
        return;
    call_hold(c);
    begin(h);
    if (c->state && !call_write(c, p, n) && c->state)
        fleet_stream_pause(h->order, true);
    call_drop(c);
}

static void on_told(void *arg, const struct msg_deed_done *d)
{
    struct hearing *h = arg;
    struct call *c = h->call;
    h->order = NULL;
    if (d->code == 0 && h->use.done)
        h->use.done(h, d->text);
    if (!c)
        return end(h->world, &h->use, h);
    call_hold(c);
    if (d->code == PALE_CORRUPT && h->use.takes)
        c->status = err_http_status(PALE_BAD_INPUT); /* what is damaged is what was sent, nothing of ours */
    if (d->code != 0)
        call_refuse(c, d->code < PALE_CODE_COUNT ? (enum pale_code)d->code : PALE_PROTOCOL, "%s", d->text);
    else
        begin(h);
    if (c->state)
        call_end(c, true);
    call_drop(c);
}

/* --- the body --- */

static void on_piece(struct call *c, const void *p, size_t n, bool last)
{
    struct hearing *h = c->state;
    char most[32];
    if (!h || !h->order)
        return; /* it needed no more */
    h->given += n;
    if (h->given > h->use.takes)
        return call_refuse(c, PALE_LIMIT, "the body is longer than %s", number_show_bytes(h->use.takes, most, sizeof(most)));
    if (!fleet_stream_give(h->order, p, n, last))
        return call_refuse(c, PALE_BUSY, "the body comes faster than it is taken; try again");
    if (!last && fleet_stream_waits(h->order))
        c->port->want(c, false);
}

static void on_taken(void *arg)
{
    struct hearing *h = arg;
    if (h->call && !h->call->bytes_done)
        h->call->port->want(h->call, true);
}

static void take_body(struct call *c)
{
    if (c->bytes_done)
        return on_piece(c, "", 0, true);
    c->piece = on_piece;
    c->port->want(c, true);
}

void hearing_follow(struct call *c, const struct msg_deed *m, const struct hearing_use *use, const char *about)
{
    struct pale_err e;
    struct hearing *h = calloc(1, sizeof(*h));
    if (!h) {
        end(c->world, use, NULL);
        return call_refuse(c, PALE_NO_MEMORY, "out of memory");
    }
    *h = (struct hearing){.call = c, .use = *use, .world = c->world};
    snprintf(h->about, sizeof(h->about), "%s", about);
    snprintf(h->caller, sizeof(h->caller), "%s", m->caller);
    const struct fleet_ears ears = {.part = on_part, .told = on_told, .taken = use->takes ? on_taken : NULL, .arg = h};
    h->order = fleet_stream(&c->world->fleet, m, &ears, &e);
    if (!h->order) {
        end(c->world, use, h);
        return call_fail(c, &e);
    }
    c->state = h;
    c->left = on_left;
    c->room = on_room;
    if (use->takes)
        take_body(c);
}

void hearing_done(void *arg, const struct msg_deed_done *d)
{
    struct call *c = arg;
    if (d->code != 0)
        call_refuse(c, d->code < PALE_CODE_COUNT ? (enum pale_code)d->code : PALE_PROTOCOL, "%s", d->text);
    else
        call_nothing(c);
    call_drop(c);
}
