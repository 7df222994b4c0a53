/* SPDX-License-Identifier: Apache-2.0 */
/* An answer of the operator to a question of a box, from the first word to the last: the keeper hears it and lets the connections that
 * wait go on or end; what is to stand is written to its list; and the keepers that it is for read it. Blocks. */
#pragma once

#include "base/buf.h"
#include "base/json.h"
#include "base/err.h"
#include "box/place.h"
#include "box/standing.h"
#include "wire/message.h"

/* caller: for whom, as life_stop has it. PALE_NOT_FOUND if the question is not open, PALE_DENIED if it is not the one that is cited. */
int approval_answer(const struct place *p, const struct msg_verdict *m, const char *caller, struct pale_err *e) MUST_CHECK;

/* A question of a box, kept. */
struct approval_asked {
    char id[QUESTION_ID_LEN + 1];
    char box[BOX_ID_LEN + 1], box_name[BOX_NAME_MAX + 1];
    char host[DOMAIN_NAME_MAX + 1], via[DOMAIN_NAME_MAX + 1]; /* via: the name that led to host, which is an address; "" */
    char rule[300];
    uint64_t port, job, asked_unix_ms, expires_unix_ms;
};
void approval_keep(const struct msg_question *m, const char *box, const char *box_name, struct approval_asked *ret);
/* As the API and the command tell of it. state may be NULL. */
void approval_json(const struct approval_asked *q, const char *state, struct json *j);

/* Calls fn with each open question of a box that runs. */
typedef int approval_fn(void *arg, const struct place *p, const struct msg_question *q);
int approval_each(const struct place *p, approval_fn *fn, void *arg, struct pale_err *e) MUST_CHECK;

/* Calls fn with each answer that stands for a box and holds now, the narrowest first. */
typedef int approval_standing_fn(void *arg, enum verdict_scope scope, const struct standing *s);
int approval_standing(const struct place *p, approval_standing_fn *fn, void *arg, struct pale_err *e) MUST_CHECK;

/* Takes one back, in the list of this scope: where a policy asks, the operator is asked again. Connections that were made because of it are
 * cut. PALE_NOT_FOUND if none stands there. */
int approval_forget(const struct place *p, enum verdict_scope scope, const char *host, uint16_t port, struct pale_err *e) MUST_CHECK;

/* When an answer that stands for so long is over, in seconds since 1970; 0 for 0. */
uint64_t approval_until(uint64_t for_ms);
