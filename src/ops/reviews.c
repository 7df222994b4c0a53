/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the operations on what a box has changed: told, landed in the tree its project is, thrown away.
 *
 * Each is a deed that is followed (ops/hearing.h): what it tells may be as large as the tree, and is the box's. */
#include <string.h>

#include "base/jsonread.h"
#include "ops/hearing.h"
#include "ops/ops.h"
#include "ops/talk.h"

/* The numbers are the deed's own. */
static void tell_event(const struct hearing *h, const char *numbers)
{
    const struct core_box *b = core_by_id(h->world->fleet.core, h->about);
    struct jsonread v;
    own_buf fields = {0};
    struct json j;
    if (!b || !jsonread_parse(numbers, strlen(numbers), &v) || v.kind != JSONREAD_OBJECT)
        return;
    buf_init(&fields, 400);
    json_start(&j, &fields);
    j.more[0] = true; /* it stands inside an object that has begun */
    json_raw(&j, "files", v.at, v.len);
    json_text(&j, "caller", h->caller);
    events_tell(&h->world->fleet.events, "review.applied", b->id, b->tenant, b->name, fields.failed ? "" : buf_text(&fields));
}

/* --- diff --- */

void op_box_diff(struct call *c)
{
    const struct core_box *b = talk_find(c);
    const char *path = call_text(c, "path", ""), *form = call_text(c, "form", "patch");
    own_buf paths = {0};
    struct json j;
    if (!b)
        return;
    buf_init(&paths, 8 * PATH_BYTES_MAX);
    if (path[0]) {
        json_start(&j, &paths);
        json_begin_list(&j, NULL);
        json_text(&j, NULL, path);
        json_end_list(&j);
    }
    const struct msg_deed m = {.kind = DEED_DIFF,
                               .id = b->id,
                               .born = b->born,
                               .caller = call_caller(c),
                               .paths = buf_text(&paths),
                               .snapshot = call_text(c, "from", ""),
                               .until = call_text(c, "to", ""),
                               .form = form};
    const struct hearing_use use = {.type = strcmp(form, "json") == 0 ? "application/x-ndjson" : "text/plain; charset=utf-8"};
    hearing_follow(c, &m, &use, m.id);
}

/* --- apply --- */

int reviews_paths(const struct call *c, struct buf *ret, struct pale_err *e)
{
    const struct value *v = call_value(c, "paths");
    struct json j;
    size_t i;
    json_t *item;
    if (!v->given || json_array_size(v->json) == 0)
        return 0;
    json_start(&j, ret);
    json_begin_list(&j, NULL);
    json_array_foreach(v->json, i, item)
    {
        const char *path = json_string_value(item);
        if (json_string_length(item) >= PATH_BYTES_MAX || json_string_length(item) != strlen(path) || !path[0])
            return err_set(e, PALE_BAD_INPUT, "paths: the text of number %zu is no path", i + 1);
        json_text(&j, NULL, path);
    }
    json_end_list(&j);
    return ret->failed ? err_set(e, PALE_LIMIT, "paths: they are too long together; name a folder above them") : 0;
}

void op_review_apply(struct call *c)
{
    struct pale_err e;
    own_buf paths = {0};
    if (c->who.scope == CALLER_BOX)
        return call_refuse(c, PALE_DENIED, "a box's token lands nothing: what leaves a box is the operator's to decide");
    const struct core_box *b = talk_find(c);
    if (!b)
        return;
    buf_init(&paths, FRAME_PAYLOAD_MAX);
    if (reviews_paths(c, &paths, &e) < 0)
        return call_fail(c, &e);
    const struct msg_deed m = {.kind = DEED_APPLY,
                               .id = b->id,
                               .born = b->born,
                               .tenant = c->who.scope == CALLER_TENANT ? c->who.tenant : "",
                               .caller = call_caller(c),
                               .paths = buf_text(&paths),
                               .guarded = call_number(c, "include_guarded", 0) != 0,
                               .dry = call_number(c, "dry_run", 0) != 0};
    const struct hearing_use use = {.type = "application/json", .goes_on = !m.dry, .done = m.dry ? NULL : tell_event};
    hearing_follow(c, &m, &use, m.id);
}
