/* SPDX-License-Identifier: Apache-2.0 */
/* Those who wait for a box, and their answers. For fleet alone. */
#pragma once

#include "fleet/course.h"

#define QUEUE_MOVING "box %s may have got another name just now; look for it and try again"

void queue_append(struct box *b, struct wait *w);

/* A removal joins the one that is under way, or comes next after another deed: it must not come after a request to make the box
 * again. */
void queue_insert_removal(struct box *b, struct wait *w);

/* Takes it off the queue, if it is on it. */
void queue_unlink(struct box *b, struct wait *w);

/* Ends a request: off the queue of b, if it is on it, and on the list of answers, with b as it is now. how: NULL if it went well. */
void queue_answer(struct core *c, struct box *b, struct wait *w, const struct pale_err *how);

/* The same with an error, whose text has a place for one word. */
void queue_refuse(struct core *c, struct box *b, struct wait *w, enum pale_code code, const char *fmt, const char *what);

/* All at the front who wait for the same. */
void queue_answer_front(struct core *c, struct box *b, enum wait_kind kind, const struct pale_err *how);

/* Was this asked of the box that was born so, not of one that somebody has put in its place since? */
bool queue_is_meant(const struct wait *w, uint64_t born);
