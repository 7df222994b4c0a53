/* SPDX-License-Identifier: Apache-2.0 */
/* The host folders a policy brings into a box, whichever key names them, as one list.
 *
 * Where two targets lie one inside the other, the inner one decides there. */
#pragma once

#include "policy/policy.h"

/* Rising: wider. review writes to a copy; live is held back by the guard list; write is not. */
enum share_access { SHARE_READ = 1, SHARE_REVIEW, SHARE_LIVE, SHARE_WRITE };

struct share {
    const char *key;           /* of the policy line: "write" */
    const char *host, *target; /* owned by the policy; both "." for a project whose path is not filled in yet */
    enum share_access access;
};

struct shares {
    struct share *item;
    size_t count;
};

int shares_init(struct shares *m, const struct policy *p, struct pale_err *e) MUST_CHECK;
void shares_done(struct shares *m);
#define own_shares CLEANUP(shares_done) struct shares

/* The one that decides at this path of the box, or NULL. */
const struct share *shares_at(const struct shares *m, const char *path);

/* Is every host file that child reaches reached by parent too, at the same place and with at least as much access? */
int shares_narrow(const struct shares *parent, const struct shares *child, struct pale_err *e) MUST_CHECK;
