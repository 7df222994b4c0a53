/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the operations on what was taken out of a box's live project. Where it goes when it is given back is where it was: a folder of this
 * host that a client names is not opened for him. */
#include <string.h>

#include "base/number.h"
#include "fleet/order.h"
#include "ops/hearing.h"
#include "ops/ops.h"
#include "ops/talk.h"

void op_guard_list(struct call *c)
{
    const struct hearing_use use = {.type = "application/json"};
    if (c->who.scope == CALLER_BOX)
        return call_refuse(c, PALE_DENIED, "a box's token does not learn what was taken from the box");
    const struct core_box *b = talk_find(c);
    if (!b)
        return;
    const struct msg_deed m = {.kind = DEED_GUARD_LIST, .id = b->id, .born = b->born, .caller = call_caller(c)};
    hearing_follow(c, &m, &use, m.id);
}

static void order(struct call *c, enum deed_kind kind)
{
    const struct core_box *b = talk_find(c);
    uint64_t number = 0;
    if (!b)
        return;
    if (!number_u64(call_param(c, "number"), GUARD_KEPT_MAX, &number) || number == 0)
        return call_refuse(c, PALE_NOT_FOUND, "there is no such number in the quarantine");
    const struct msg_deed m = {.kind = kind, .id = b->id, .born = b->born, .count = number, .caller = call_caller(c)};
    call_hold(c);
    fleet_deed(&c->world->fleet, &m, hearing_done, c);
}

void op_guard_release(struct call *c)
{
    order(c, DEED_GUARD_RELEASE);
}

void op_guard_drop(struct call *c)
{
    order(c, DEED_GUARD_DROP);
}
