/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the making of agents' boxes. */
#include "cli/ensure.h"

#include <stdio.h>
#include <string.h>

#include "box/intake.h"
#include "box/life.h"
#include "box/reach.h"
#include "box/start.h"
#include "cli/boxflags.h"
#include "cli/lookup.h"

const struct option ensure_options[] = {
    {"box", 'b', "NAME", "the box to work in (agent); it is made if there is none", NULL},
    {0},
};

/* Who starts an agent in a folder wants it to work there. */
static int wanted_policy(const struct args *a, struct policy *ret, struct pale_err *e)
{
    int r = boxflags_policy(a, ret, e);
    if (r < 0 || args_has(a, "project") || ret->project != PROJECT_NONE)
        return r;
    r = intake_set(ret, "project.mode", "live", e);
    return r < 0 ? r : intake_check(ret, ".", e);
}

static int check_same(const struct args *a, const struct place *p, const struct policy *there, struct pale_err *e)
{
    own_policy wanted = {0};
    char x[SHA256_HEX], y[SHA256_HEX];
    int r = wanted_policy(a, &wanted, e);
    if (r < 0)
        return r;
    policy_digest(&wanted, x);
    policy_digest(there, y);
    if (strcmp(x, y) == 0)
        return 0;
    return err_set(e, PALE_EXISTS,
                   "box %s is there with another policy than these flags make; `pale rm %s` first, or choose another with --box", p->name,
                   p->name);
}

static int check_found(const struct args *a, const struct place *p, const char *project, struct pale_err *e)
{
    own_policy policy = {0};
    struct policy_answer answer;
    int r = life_policy(p, &policy, e);
    if (r == 0 && boxflags_given(a))
        r = check_same(a, p, &policy, e);
    if (r == 0)
        r = policy_ask(&policy, "read", project, &answer, e);
    if (r == 0 && !answer.allowed)
        r = err_set(e, PALE_DENIED, "box %s does not show %s; choose another with --box NAME, which is made if there is none", p->name,
                    project);
    return r;
}

static int make(const struct args *a, const char *name, struct ensured *ret, struct pale_err *e)
{
    own_policy policy = {0};
    own_reach reach = {.fd = -1};
    int r = wanted_policy(a, &policy, e);
    if (r < 0)
        return r;
    struct life_order order = {.name = name, .scope = SCOPE_PROJECT, .policy = &policy};
    r = life_make(&order, &ret->place, e);
    if (r < 0)
        return r;
    own_start_look look = START_LOOK_NONE;
    start_look_begin(&look, &ret->place, &policy);
    reach_init(&reach);
    r = reach_box(&reach, &ret->place, true, e);
    start_look_end(&look, &ret->place);
    if (r < 0)
        life_take_back(&ret->place);
    return r;
}

int ensure_box(const struct args *a, const char *project, bool only_look, struct ensured *ret, struct pale_err *e)
{
    const char *name = args_get(a, "box");
    *ret = (struct ensured){0};
    int r = name ? lookup_box(a, name, &ret->place, e) : place_find(ENSURE_NAME, SCOPE_PROJECT, &ret->place, e);
    if (r == 0)
        return check_found(a, &ret->place, project, e);
    if (r != -PALE_NOT_FOUND || strstr(e->text, "not made by you"))
        return r;
    name = name ? name : ENSURE_NAME;
    ret->is_made = true;
    if (!only_look)
        return make(a, name, ret, e);
    own_policy policy = {0};
    snprintf(ret->place.name, sizeof(ret->place.name), "%s", name);
    snprintf(ret->place.id, sizeof(ret->place.id), "%s", name); /* it has no id yet */
    return wanted_policy(a, &policy, e);
}
