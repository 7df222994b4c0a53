/* SPDX-License-Identifier: Apache-2.0 */
/* How things are shown in answers: the shapes of op_shapes, written. */
#pragma once

#include "fleet/core.h"
#include "ops/call.h"
#include "wire/message.h"

void shown_box(struct json *j, const char *key, struct call *c, const struct core_box *b);

/* The same with what is asked of one alone, because the disk must be looked at for it; folders and processes for operators. */
void shown_one(struct json *j, struct call *c, const struct core_box *b);
void shown_job(struct json *j, const char *key, const struct msg_job *m);

/* Bytes of a box: as "data" if they are UTF-8, else as "base64". */
void shown_bytes(struct json *j, const void *p, size_t n);

/* The same with another name for those that are UTF-8. */
void shown_bytes_as(struct json *j, const char *key, const void *p, size_t n);

/* An answer that is a stream: of lines, or of events if the client wants those. */
void shown_begin(struct call *c);

/* A piece of it: a line of its own, or an event of that name. */
bool shown_piece(struct call *c, const char *event, struct buf *json);

/* {"event":EVENT,NAME:V} */
void shown_number(struct buf *ret, const char *event, const char *name, uint64_t v);

/* Output from a byte on: what a keeper sends of it may begin earlier, or later if it keeps no more. */
struct shown_from {
    uint64_t wanted; /* the next byte, or the first */
    uint64_t skip;   /* bytes before it that are still to come */
};
void shown_offset(struct shown_from *o, uint64_t first);
/* How many of the next n bytes nobody wants. */
size_t shown_skip(struct shown_from *o, size_t n);
