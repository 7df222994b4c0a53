/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the unpacking of archives. */
#include "cli/unpack.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "box/ownplaces.h"
#include "box/reach.h"
#include "cli/chore.h"
#include "policy/policy.h"

/* Of the defaults, which give a box nothing, one folder more. */
static int make_policy(const struct unpack *u, struct policy *ret, struct pale_err *e)
{
    int r = policy_init(ret, e);
    if (r == 0)
        r = policy_set(ret, "write", u->folder, e);
    if (r == 0)
        r = policy_set(ret, "scratch", "memory", e);
    return r < 0 ? r : policy_check(ret, e);
}

int unpack_run(const struct unpack *u, struct left *left, struct pale_err *e)
{
    static struct chore chore;
    own_policy p = {0};
    own_buf told = {0};
    int r = make_policy(u, &p, e);
    /* Who builds an image has named all of its staging. */
    if (r == 0 && setenv(OWNPLACES_STAGING, u->folder, 0) < 0)
        r = err_nomem(e);
    reach_init(&chore.reach);
    if (r == 0)
        r = reach_once(&chore.reach, &p, e);
    if (r < 0)
        return r;
    chore_set(&chore, (const char *const[]){"layer", u->folder, u->pass, NULL});
    snprintf(chore.label, sizeof(chore.label), "%s", u->label ? u->label : "unpack an image");
    buf_init(&told, LEFT_TEXT_MAX);
    chore.exec.flags |= EXEC_STDIN;
    chore.session.forward_input = true;
    chore.session.in_fd = u->in_fd;
    chore.session.out = &told;
    chore.session.shows_progress = u->shows_progress;
    r = chore_run(&chore, e);
    if (chore.signal)
        return err_set(e, PALE_GONE, "interrupted");
    if (r == 0 && told.failed)
        r = err_set(e, PALE_CORRUPT, "the box told more than there is to tell");
    return r < 0 ? r : left_hear(left, (const char *)told.data, told.len, e);
}
