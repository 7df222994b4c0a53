/* SPDX-License-Identifier: Apache-2.0 */
/* Questions of boxes as the command knows them, from the keepers of this host or from a daemon elsewhere, and the answers to them. */
#pragma once

#include "base/json.h"
#include "cli/cli.h"
#include "cli/remote.h"
#include "wire/message.h"

struct inquiry {
    char id[QUESTION_ID_LEN + 1];
    char box[BOX_ID_LEN + 1], box_name[BOX_NAME_MAX + 1];
    char host[DOMAIN_NAME_MAX + 1], via[DOMAIN_NAME_MAX + 1]; /* via: the name that led to host, which is an address; "" */
    uint16_t port;
    char rule[300];
    uint64_t job, asked_unix_ms, expires_unix_ms;
};

struct inquiries {
    size_t count;
    struct inquiry *item;
};
void inquiries_done(struct inquiries *l);
#define own_inquiries CLEANUP(inquiries_done) struct inquiries

/* All that are open, oldest first. r: the daemon to ask; NULL: the keepers of this host. */
int inquiry_list(struct remote *r, struct inquiries *ret, struct pale_err *e) MUST_CHECK;
const struct inquiry *inquiry_find(const struct inquiries *l, const char *id);
void inquiry_json(const struct inquiry *q, const char *state, struct json *j);

/* "good.example port 443", with the name that led there. Returns ret. */
const char *inquiry_text(const struct inquiry *q, char *ret, size_t cap);

struct inquiry_answer {
    bool allow;
    enum verdict_scope scope;
    uint64_t for_ms; /* 0: for ever */
};
int inquiry_answer(struct remote *r, const struct inquiry *q, const struct inquiry_answer *a, struct pale_err *e) MUST_CHECK;
