/* SPDX-License-Identifier: Apache-2.0 */
/* Questions of boxes as the command knows them, from the keepers of this host or from a daemon elsewhere, and the answers to them. */
#pragma once

#include "box/approval.h"
#include "cli/cli.h"
#include "cli/remote.h"
#include "wire/message.h"

struct inquiries {
    size_t count;
    struct approval_asked *item;
};
void inquiries_done(struct inquiries *l);
#define own_inquiries CLEANUP(inquiries_done) struct inquiries

/* All that are open, oldest first. r: the daemon to ask; NULL: the keepers of this host. */
int inquiry_list(struct remote *r, struct inquiries *ret, struct pale_err *e) MUST_CHECK;
const struct approval_asked *inquiry_find(const struct inquiries *l, const char *id);

/* "good.example port 443", with the name that led there. Returns ret. */
const char *inquiry_text(const struct approval_asked *q, char *ret, size_t cap);

struct inquiry_answer {
    bool allow;
    enum verdict_scope scope;
    uint64_t for_ms; /* 0: for ever */
};
int inquiry_answer(struct remote *r, const struct approval_asked *q, const struct inquiry_answer *a, struct pale_err *e) MUST_CHECK;
