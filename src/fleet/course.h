/* SPDX-License-Identifier: Apache-2.0 */
/* The course of one box: what is to be done next with it, and for whom. For fleet alone. */
#pragma once

#include "fleet/roll.h"

struct core {
    struct core_io io;
    struct roll roll;
    bool settled;
    int64_t doubt_ms; /* until then deeds of a former life may be at work */
    uint64_t deeds, ticks;
    size_t waits;
    unsigned saves;              /* checkpoints under way */
    struct wait *out, *out_last; /* answers to be delivered */
    bool delivering;
};

static inline int64_t course_now(const struct core *c)
{
    return c->io.now_ms(c->io.arg);
}

static inline int64_t course_unix(const struct core *c)
{
    return c->io.unix_ms(c->io.arg);
}

/* Does what can be done now and says when to come again. The box may be forgotten by this. */
void course_run(struct core *c, struct box *b);

/* Brings a request for a new box to the queue or the answer it belongs to. It is the core's afterwards. */
void course_create(struct core *c, struct wait *w);

/* Puts a request for a box that is known into its queue. */
void course_ask(struct core *c, struct box *b, struct wait *w);

/* Is it a box that others may know of? */
bool course_is_shown(const struct box *b);

/* Is there a deed, or something of one, under way? */
bool course_is_busy(const struct box *b);

/* As others are to see it. */
enum core_state course_state(const struct core *c, const struct box *b);
