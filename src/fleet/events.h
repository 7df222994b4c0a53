/* SPDX-License-Identifier: Apache-2.0 */
/* What has happened: the newest happenings, numbered, for whoever listens and for whoever comes back.
 *
 * A number is an epoch (one life of the daemon) and a count. Who asks for what came after a number gets it, or is told of the gap if it
 * is no longer here. The durable record is each box's audit log; this is for the moment. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/limits.h"

#define EVENTS_KEPT 2048u
#define EVENT_BYTES_MAX 512u

struct event {
    uint64_t number;
    char kind[24];
    char box[BOX_ID_LEN + 1];      /* "": none */
    char tenant[BOX_NAME_MAX + 1]; /* whose box */
    char text[EVENT_BYTES_MAX];    /* a JSON object */
};

struct listener {
    void (*heard)(struct listener *l, const struct event *ev);
    struct listener *next;
};

struct events {
    uint64_t epoch, last; /* number of the newest */
    size_t count, first;
    struct event *ring; /* made with the first event */
    struct listener *listeners;
};

void events_init(struct events *e, uint64_t epoch);
void events_done(struct events *e);

/* fields: JSON members to add, beginning with a comma, or "". A lack of memory loses the event, and the numbers tell. */
void events_tell(struct events *e, const char *kind, const char *box, const char *tenant, const char *name, const char *fields);

void events_listen(struct events *e, struct listener *l);
void events_unlisten(struct events *e, struct listener *l);

/* The oldest kept after a number, or NULL. *ret_missed: some between were not kept. */
const struct event *events_after(const struct events *e, uint64_t number, bool *ret_missed);
