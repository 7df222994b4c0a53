/* SPDX-License-Identifier: Apache-2.0 */
/* Taking a box again whose folders say different things, because somebody moved, copied or removed one of them; and giving it up. */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "box/place.h"
#include "policy/policy.h"

struct adopt_order {
    const char *name;            /* of the box, or its id */
    enum place_scope scope;      /* where the name is looked for */
    const struct policy *policy; /* of a box whose own was removed with it (`pale rm --keep-data`), or never was here */
    bool says_policy;            /* somebody has said what it is to be: no box that has its own is adopted as if it were that */
    const char *caller;
};

/* What came of it, in a word for people. */
enum adopt_kind { ADOPT_MOVED, ADOPT_FORKED, ADOPT_MADE, ADOPT_PUT_BACK };

/* A folder that was moved becomes the place of its box; a copy becomes a fork of it; what a box without a policy has left becomes a box of
 * another id; the folder of a project's box that was removed is made again. PALE_EXISTS if there is nothing to do; PALE_BUSY if it runs;
 * else what stands in the way, and nothing has changed. */
int adopt_box(const struct adopt_order *o, struct place *ret, enum adopt_kind *ret_kind, struct pale_err *e) MUST_CHECK;

/* Gives up a box that has lost its folder: what is known of it goes, its folder stays wherever it is. Files that are kept with what is
 * known of it go only with force. */
int adopt_forget(const struct place *p, bool force, struct pale_err *e) MUST_CHECK;

/* What a policy says of the project of the box with this data folder, it says of that of another. */
int adopt_move_project(struct policy *policy, const char *from_data, const char *to_data, struct pale_err *e) MUST_CHECK;
