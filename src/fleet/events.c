/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the ring of happenings. */
#include "fleet/events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"

void events_init(struct events *e, uint64_t epoch)
{
    *e = (struct events){.epoch = epoch};
}

void events_done(struct events *e)
{
    free(e->ring);
    e->ring = NULL;
}

/* The ring grows with use: a daemon that is left alone keeps little. */
static struct event *next_place(struct events *e)
{
    if (e->count < EVENTS_KEPT && (e->count & (e->count - 1)) == 0) {
        size_t room = e->count < 16 ? 16 : 2 * e->count;
        if (e->count == 0 || e->count >= 16) {
            struct event *more = realloc(e->ring, room * sizeof(*more));
            if (!more)
                return NULL;
            e->ring = more;
        }
    }
    if (e->count < EVENTS_KEPT)
        return &e->ring[e->count++];
    struct event *ev = &e->ring[e->first];
    e->first = (e->first + 1) % EVENTS_KEPT;
    return ev;
}

void events_tell(struct events *e, const char *kind, const char *box, const char *tenant, const char *name, const char *fields)
{
    char stamp[40];
    own_buf b = {0};
    struct json j;
    struct event *ev = next_place(e);
    e->last++;
    if (!ev)
        return;
    *ev = (struct event){.number = e->last};
    snprintf(ev->kind, sizeof(ev->kind), "%s", kind);
    snprintf(ev->box, sizeof(ev->box), "%s", box);
    snprintf(ev->tenant, sizeof(ev->tenant), "%s", tenant);
    buf_init(&b, EVENT_BYTES_MAX - 1);
    json_start(&j, &b);
    json_begin_object(&j, NULL);
    json_text(&j, "event", kind);
    json_text(&j, "time", clock_stamp(stamp, sizeof(stamp)));
    json_text(&j, "box", box);
    json_text(&j, "name", name);
    buf_add_text(&b, fields);
    json_end_object(&j);
    if (b.failed)
        snprintf(ev->text, sizeof(ev->text), "{\"event\":\"%s\",\"box\":\"%s\",\"cut\":true}", ev->kind, ev->box);
    else
        snprintf(ev->text, sizeof(ev->text), "%s", buf_text(&b));
    for (struct listener *l = e->listeners, *next; l; l = next) {
        next = l->next;
        l->heard(l, ev);
    }
}

void events_listen(struct events *e, struct listener *l)
{
    l->next = e->listeners;
    e->listeners = l;
}

void events_unlisten(struct events *e, struct listener *l)
{
    for (struct listener **at = &e->listeners; *at; at = &(*at)->next)
        if (*at == l) {
            *at = l->next;
            return;
        }
}

const struct event *events_after(const struct events *e, uint64_t number, bool *ret_missed)
{
    *ret_missed = false;
    if (number >= e->last || e->count == 0)
        return NULL;
    *ret_missed = number + 1 < e->ring[e->first].number;
    /* Their numbers rise, so the first after this one is found by halves: there may be many listeners. */
    size_t from = 0, to = e->count - 1;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (e->ring[(e->first + middle) % e->count].number > number)
            to = middle;
        else
            from = middle + 1;
    }
    const struct event *ev = &e->ring[(e->first + from) % e->count];
    return ev->number > number ? ev : NULL;
}
