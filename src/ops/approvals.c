/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the operations on questions of boxes. An answer is the operator's alone: it widens what a box may do, or keeps it from it. */
#include <string.h>

#include "fleet/order.h"
#include "fleet/pending.h"
#include "ops/hearing.h"
#include "ops/ops.h"
#include "ops/talk.h"

#define LIST_MAX (8u << 20)

void op_approval_list(struct call *c)
{
    struct fleet *f = &c->world->fleet;
    own_buf b = {0};
    struct json j;
    buf_init(&b, LIST_MAX);
    json_start(&j, &b);
    json_begin_object(&j, NULL);
    json_begin_list(&j, "items");
    for (const struct core_box *x = core_after(f->core, "", "", ""); x; x = core_after(f->core, x->tenant, x->name, x->id)) {
        const struct lookout *w = talk_sees(&c->who, x) ? lookout_of(f, x->id) : NULL;
        for (const struct pending *q = w ? w->pending : NULL; q; q = q->next)
            approval_json(&q->q, NULL, &j);
    }
    json_end_list(&j);
    json_end_object(&j);
    call_json(c, &b);
}

void op_approval_answer(struct call *c)
{
    const char *verdict = call_text(c, "verdict", ""), *scope = call_text(c, "scope", "once");
    const struct core_box *b = core_by_id(c->world->fleet.core, call_text(c, "box", ""));
    uint64_t port = call_number(c, "port", 0);
    bool allow = strcmp(verdict, "allow") == 0, known = false;
    for (size_t i = 0; i < APPLIES_COUNT; i++)
        known = known || strcmp(scope, msg_verdict_scopes[i]) == 0;
    if (!allow && strcmp(verdict, "deny") != 0)
        return call_refuse(c, PALE_BAD_INPUT, "verdict is allow or deny");
    if (!known)
        return call_refuse(c, PALE_BAD_INPUT, "scope is once, box, project or always");
    if (!b)
        return call_refuse(c, PALE_NOT_FOUND, "there is no box with that id; an answer cites the question as GET /v1/approvals tells it");
    const struct msg_deed m = {.kind = DEED_VERDICT,
                               .id = b->id,
                               .born = b->born,
                               .caller = call_caller(c),
                               .name = call_param(c, "question"),
                               .sets = call_text(c, "host", ""),
                               .count = port,
                               .force = allow,
                               .form = scope,
                               .for_ms = call_number(c, "for", 0)};
    call_hold(c);
    fleet_deed(&c->world->fleet, &m, hearing_done, c);
}
