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

/* The fields of a result, into an open object. */
void shown_result(struct json *j, const struct msg_result *r);

/* Bytes of a box: as "data" if they are UTF-8, else as "base64". */
void shown_bytes(struct json *j, const void *p, size_t n);

/* A piece of a stream: a line of its own, or an event of that name. */
bool shown_piece(struct call *c, const char *event, struct buf *json);
