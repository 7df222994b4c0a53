/* SPDX-License-Identifier: Apache-2.0 */
/* Questions of a box that wait for the operator, as its keeper tells of them. */
#pragma once

#include "base/json.h"
#include "fleet/fleet.h"

struct pending {
    struct pending *next; /* in the order in which they were asked */
    char id[QUESTION_ID_LEN + 1];
    char host[DOMAIN_NAME_MAX + 1], via[DOMAIN_NAME_MAX + 1], rule[300];
    uint64_t port, job, asked_unix_ms, expires_unix_ms;
};

/* What a keeper says of one: it is remembered or forgotten, and whoever listens to events hears of it. False if it cannot be read. */
bool pending_take(struct lookout *w, const struct frame *f);
void pending_forget(struct lookout *w);

/* As the API tells of it. */
void pending_json(const struct pending *q, const struct core_box *b, struct json *j);
