/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the operations on boxes as archives: one told to the client, one that he sends made a box.
 *
 * Both are deeds that are followed (ops/hearing.h). The archive passes through as bytes that nobody here looks at: what is in it is a
 * box's, or a stranger's. */
#include <stdlib.h>
#include <string.h>

#include "base/jsonread.h"
#include "base/path.h"
#include "fleet/order.h"
#include "net/cargo.h"
#include "ops/hearing.h"
#include "ops/ops.h"
#include "ops/talk.h"
#include "ops/values.h"

/* At once: each has a disk's and a processor's work to do. Tenants never take all places of an operator's. */
#define EXPORTS_MAX 8u
#define IMPORTS_MAX 4u
#define TENANT_IMPORTS_MAX 2u

/* As much as an export may be unpacked, and what its headers add to that at most. */
#define ARCHIVE_BYTES_MAX (CARGO_BYTES_MAX + (8ull << 30))

static void tell_event(struct world *w, const char *event, const char *id, const char *caller)
{
    const struct core_box *b = core_by_id(w->fleet.core, id);
    own_buf fields = {0};
    struct json j;
    if (!b)
        return;
    buf_init(&fields, 400);
    json_start(&j, &fields);
    j.more[0] = true; /* it stands inside an object that has begun */
    json_text(&j, "caller", caller);
    events_tell(&w->fleet.events, event, b->id, b->tenant, b->name, fields.failed ? "" : buf_text(&fields));
}

/* --- export --- */

static void on_exported(const struct hearing *h, const char *told)
{
    (void)told;
    tell_event(h->world, "box.exported", h->about, h->caller);
}

static void export_over(struct world *w)
{
    w->exports--;
}

void op_box_export(struct call *c)
{
    const struct core_box *b = talk_find(c);
    bool plain = call_number(c, "plain", 0) != 0;
    if (!b)
        return;
    if (!call_holds(&c->who, RIGHT_POLICY_READ))
        return call_refuse(c, PALE_DENIED, "this token has no right to %s: the policy is in an export too, and that needs %s", c->op->name,
                           op_right_names[RIGHT_POLICY_READ]);
    if (c->world->exports == EXPORTS_MAX)
        return call_refuse(c, PALE_BUSY, "%u boxes are being exported already; try again when one is done", EXPORTS_MAX);
    const struct msg_deed m = {.kind = DEED_EXPORT,
                               .id = b->id,
                               .born = b->born,
                               .caller = call_caller(c),
                               .snapshot = call_text(c, "at", ""),
                               .form = plain ? "plain" : "zstd"};
    const struct hearing_use use = {.type = plain ? "application/x-tar" : "application/zstd", .done = on_exported, .over = export_over};
    c->world->exports++;
    hearing_follow(c, &m, &use, m.id);
}

/* --- import --- */

/* The box is known from now on, not only when the watch on the disk tells of it. */
static void on_imported(const struct hearing *h, const char *told)
{
    struct jsonread v, m;
    char id[BOX_ID_LEN + 1] = "";
    if (!jsonread_parse(told, strlen(told), &v) || !jsonread_get(&v, "id", &m))
        return; /* it was not made, and whoever followed it has read why */
    jsonread_text(&m, id, sizeof(id));
    fleet_look(&h->world->fleet, id);
    tell_event(h->world, "box.imported", id, h->caller);
}

static void import_over(struct world *w)
{
    w->imports--;
}

static void tenant_import_over(struct world *w)
{
    w->imports--;
    w->tenant_imports--;
}

/* What the query says of the policy, which is JSON in a text. */
struct wishes {
    json_t *whole;
    char *policy;    /* as an order has it; NULL: the export's */
    struct buf sets; /* … too */
};

static void wishes_done(struct wishes *w)
{
    json_decref(w->whole);
    free(w->policy);
    buf_done(&w->sets);
}

static const struct op_field wish_fields[] = {
    {"policy", KIND_OBJECT, false, 0, "as a policy file has it", IN_BODY, NULL},
    {"set", KIND_MAP, false, 256, "keys of the policy and their values", IN_BODY, NULL},
    {0},
};
enum { WISH_POLICY, WISH_SET, WISH_COUNT };

static int read_wishes(const struct call *c, struct wishes *ret, struct pale_err *e)
{
    struct value values[WISH_COUNT] = {0};
    json_error_t why;
    ret->whole = json_object();
    buf_init(&ret->sets, POLICY_TEXT_MAX);
    if (!ret->whole)
        return err_nomem(e);
    for (int i = 0; i < WISH_COUNT; i++) {
        const char *name = wish_fields[i].name, *text = call_text(c, name, NULL);
        json_t *v = text ? json_loads(text, JSON_REJECT_DUPLICATES, &why) : NULL;
        if (text && !v)
            return err_set(e, PALE_BAD_INPUT, "%s is not JSON: %.100s", name, why.text);
        if (v && json_object_set_new(ret->whole, name, v) < 0)
            return err_nomem(e);
    }
    int r = values_object(c->op->name, wish_fields, ret->whole, values, e);
    if (r == 0 && values[WISH_SET].given)
        r = boxes_sets(values[WISH_SET].json, &ret->sets, e);
    if (r == 0 && values[WISH_POLICY].given && !(ret->policy = json_dumps(values[WISH_POLICY].json, JSON_COMPACT)))
        r = err_nomem(e);
    return r;
}

/* False: the call is answered. */
static bool is_free(struct call *c, bool is_tenant)
{
    const struct world *w = c->world;
    if (w->imports < IMPORTS_MAX && (!is_tenant || w->tenant_imports < TENANT_IMPORTS_MAX))
        return true;
    call_refuse(c, PALE_BUSY, "%u boxes are being imported already; try again when one is done",
                is_tenant ? w->tenant_imports : w->imports);
    return false;
}

void op_box_import(struct call *c)
{
    struct pale_err e;
    const char *tenant, *name = call_param(c, "box");
    CLEANUP(wishes_done) struct wishes wishes = {0};
    if (c->who.scope == CALLER_BOX)
        return call_refuse(c, PALE_DENIED, "a box's token makes no boxes");
    if (!boxes_tenant(c, &tenant))
        return;
    tenant = tenant ? tenant : c->who.tenant;
    if (!path_is_box_name(name) || (tenant[0] && !path_is_box_name(tenant)))
        return call_refuse(c, PALE_BAD_INPUT, "%s: 1 to %d of a-z, 0-9 and '-', and not beginning with '-'",
                           path_is_box_name(name) ? "tenant" : "name", BOX_NAME_MAX);
    if (read_wishes(c, &wishes, &e) < 0)
        return call_fail(c, &e);
    bool is_tenant = c->who.scope == CALLER_TENANT;
    if (!is_free(c, is_tenant))
        return;
    const struct msg_deed m = {.kind = DEED_IMPORT,
                               .name = name,
                               .tenant = tenant,
                               .caller = call_caller(c),
                               .policy = wishes.policy ? wishes.policy : "",
                               .sets = buf_text(&wishes.sets),
                               .until = !c->wants_stream  ? ""
                                        : c->wants_events ? "events"
                                                          : "lines"};
    const struct hearing_use use = {.type = !c->wants_stream  ? "application/json"
                                            : c->wants_events ? "text/event-stream"
                                                              : "application/x-ndjson",
                                    .done = on_imported,
                                    .over = is_tenant ? tenant_import_over : import_over,
                                    .takes = ARCHIVE_BYTES_MAX};
    c->world->imports++;
    c->world->tenant_imports += is_tenant;
    hearing_follow(c, &m, &use, name);
}
