/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the operations on a box's policy: show, narrow, change. */
#include <stdlib.h>
#include <string.h>

#include "box/life.h"
#include "ops/talk.h"
#include "ops/ops.h"

static int load(const char *id, struct policy *ret, struct pale_err *e)
{
    struct place p;
    int r = place_by_id(id, &p, e);
    return r < 0 ? r : life_policy(&p, ret, e);
}

static void answer_policy(struct call *c, const char *id)
{
    struct pale_err e;
    own_policy p = {0};
    own_buf b = {0};
    struct json j;
    char digest[SHA256_HEX];
    if (load(id, &p, &e) < 0)
        return call_fail(c, &e);
    policy_digest(&p, digest);
    buf_init(&b, 4u << 20);
    json_start(&j, &b);
    json_begin_object(&j, NULL);
    json_text(&j, "digest", digest);
    policy_json(&p, &j, "policy");
    own_buf text = {0};
    buf_init(&text, POLICY_TEXT_MAX);
    policy_write(&p, &text);
    json_text(&j, "canonical", buf_text(&text));
    if (text.failed)
        return call_refuse(c, PALE_LIMIT, "the policy is longer than it may be");
    json_end_object(&j);
    call_json(c, &b);
}

void op_policy_show(struct call *c)
{
    const struct core_box *b = talk_find(c);
    if (b)
        answer_policy(c, b->id);
}

/* Which box it was about, until the deed is done. */
struct change {
    struct call *call;
    char id[BOX_ID_LEN + 1];
};

static void on_told(void *arg, const struct msg_deed_done *d)
{
    struct change *x = arg;
    struct call *c = x->call;
    if (d->code != 0)
        call_refuse(c, d->code < PALE_CODE_COUNT ? (enum pale_code)d->code : PALE_PROTOCOL, "%s", d->text);
    else
        answer_policy(c, x->id);
    call_drop(c);
    free(x);
}

static void change(struct call *c, bool narrower)
{
    struct pale_err e;
    const struct core_box *b = talk_find(c);
    const struct value *policy = call_value(c, "policy"), *set = call_value(c, "set");
    own_buf sets = {0};
    buf_init(&sets, POLICY_TEXT_MAX);
    if (!b)
        return;
    if (!policy->given && !set->given)
        return call_refuse(c, PALE_BAD_INPUT, "%s needs policy, or set", c->op->name);
    if (set->given && boxes_sets(set->json, &sets, &e) < 0)
        return call_fail(c, &e);
    struct change *x = calloc(1, sizeof(*x));
    char *text = policy->given ? json_dumps(policy->json, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    if (!x || (policy->given && !text)) {
        free(x);
        return call_refuse(c, PALE_NO_MEMORY, "out of memory");
    }
    x->call = c;
    memcpy(x->id, b->id, sizeof(x->id));
    struct msg_deed m = {.kind = DEED_POLICY,
                         .id = x->id,
                         .name = "",
                         .tenant = b->tenant,
                         .policy = text ? text : "",
                         .sets = buf_text(&sets),
                         .born = b->born,
                         .narrower = narrower,
                         .caller = call_caller(c)};
    call_hold(c);
    fleet_deed(&c->world->fleet, &m, on_told, x);
    free(text);
}

void op_policy_narrow(struct call *c)
{
    change(c, true);
}

void op_policy_change(struct call *c)
{
    change(c, false);
}
