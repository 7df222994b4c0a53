/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the operations on a box's past: snapshots, going back, throwing away, forks, and the freeing of what nothing stands on any more.
 *
 * Whatever changes layers is a deed, ordered through the core, so that whoever wants to use the box meanwhile waits for its end. What a
 * deed tells is JSON of our own making and goes out as it is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "box/fork.h"
#include "box/snapline.h"
#include "box/stack.h"
#include "fleet/order.h"
#include "ops/ops.h"
#include "ops/shown.h"
#include "ops/talk.h"

#define LIST_BYTES_MAX (4u << 20)

/* --- changes --- */

static void on_done(void *arg, const struct core_answer *a)
{
    struct call *c = arg;
    own_buf text = {0};
    buf_init(&text, LIST_BYTES_MAX);
    buf_add_text(&text, a->told ? a->told : "");
    if (a->code != PALE_OK)
        call_refuse(c, a->code, "%s", a->text);
    else if (c->op->output == OUTPUT_NOTHING)
        call_nothing(c);
    else if (text.len == 0)
        call_refuse(c, PALE_NO_MEMORY, "it is done, but there was no memory to tell what has come of it; look");
    else
        call_json(c, &text);
    call_drop(c);
}

static void change(struct call *c, const struct order_change *x, fleet_done *done)
{
    const struct core_box *b = talk_find(c);
    char id[BOX_ID_LEN + 1];
    if (!b)
        return;
    memcpy(id, b->id, sizeof(id));
    call_hold(c);
    fleet_change(&c->world->fleet, id, x, call_caller(c), done, c);
}

static void set_name(char *ret, size_t cap, const char *text)
{
    snprintf(ret, cap, "%s", text);
}

/* A name that nobody gave is the same for the same key, so that asking twice takes one. */
void op_snapshot_take(struct call *c)
{
    struct order_change x = {.kind = DEED_SNAPSHOT};
    char hex[SHA256_HEX];
    set_name(x.snapshot, sizeof(x.snapshot), call_text(c, "name", ""));
    if (!x.snapshot[0] && c->key[0]) {
        sha256_hex(c->key, strlen(c->key), hex);
        snprintf(x.snapshot, sizeof(x.snapshot), "snap-%.12s", hex);
        x.again = true;
    }
    change(c, &x, on_done);
}

void op_snapshot_remove(struct call *c)
{
    struct order_change x = {.kind = DEED_FORGET};
    const char *name = call_param(c, "snapshot");
    if (strlen(name) > SNAPSHOT_NAME_MAX)
        name = ""; /* which no snapshot is called */
    set_name(x.snapshot, sizeof(x.snapshot), name);
    change(c, &x, on_done);
}

void op_box_restore(struct call *c)
{
    struct order_change x = {.kind = DEED_RESTORE, .force = call_number(c, "force", 0) != 0};
    set_name(x.snapshot, sizeof(x.snapshot), call_text(c, "snapshot", ""));
    change(c, &x, on_done);
}

void op_review_discard(struct call *c)
{
    struct order_change x = {.kind = DEED_DISCARD, .force = call_number(c, "force", 0) != 0};
    struct pale_err e;
    own_buf paths = {0};
    if (c->who.scope == CALLER_BOX)
        return call_refuse(c, PALE_DENIED, "a box's token decides nothing about what the box has changed");
    buf_init(&paths, FRAME_PAYLOAD_MAX);
    if (reviews_paths(c, &paths, &e) < 0)
        return call_fail(c, &e);
    x.paths = paths.len ? buf_text(&paths) : NULL;
    change(c, &x, on_done);
}

/* --- forks --- */

static void on_forked(void *arg, const struct core_answer *a)
{
    struct call *c = arg;
    own_buf text = {0};
    struct json j;
    size_t i;
    json_t *item, *told = a->code == PALE_OK && a->told[0] ? json_loads(a->told, 0, NULL) : NULL;
    if (!told)
        return on_done(arg, a);
    buf_init(&text, LIST_BYTES_MAX);
    json_start(&j, &text);
    json_begin_object(&j, NULL);
    json_begin_list(&j, "items");
    json_array_foreach(json_object_get(told, "items"), i, item)
    {
        const char *id = json_string_value(json_object_get(item, "id"));
        const struct core_box *b = id ? core_by_id(c->world->fleet.core, id) : NULL;
        if (b) /* else somebody has removed it since */
            shown_box(&j, NULL, c, b);
    }
    json_end_list(&j);
    json_end_object(&j);
    json_decref(told);
    call_json(c, &text);
    call_drop(c);
}

void op_box_fork(struct call *c)
{
    struct order_change x = {.kind = DEED_FORK, .count = (unsigned)call_number(c, "count", 1)};
    const char *name = call_text(c, "name", "");
    if (c->who.scope == CALLER_BOX)
        return call_refuse(c, PALE_DENIED, "a box's token makes no boxes");
    if (!path_is_box_name(name))
        return call_refuse(c, PALE_BAD_INPUT, "name: 1 to %d of a-z, 0-9 and '-', and not beginning with '-'", BOX_NAME_MAX);
    if (x.count < 1)
        return call_refuse(c, PALE_BAD_INPUT, "count: 1 to %d forks are made at once", FORK_MAX);
    set_name(x.name, sizeof(x.name), name);
    set_name(x.snapshot, sizeof(x.snapshot), call_text(c, "at", ""));
    change(c, &x, on_forked);
}

/* --- the list --- */

void op_snapshot_list(struct call *c)
{
    const struct core_box *b = talk_find(c);
    struct pale_err e;
    struct place p;
    own_stack s = {0};
    own_buf text = {0};
    struct json j;
    if (!b)
        return;
    stack_init(&s);
    if (place_by_id(b->id, &p, &e) < 0 || stack_load(&p, &s, &e) < 0)
        return call_fail(c, &e);
    buf_init(&text, LIST_BYTES_MAX);
    json_start(&j, &text);
    json_begin_object(&j, NULL);
    json_begin_list(&j, "items");
    for (size_t i = 0; i < s.snapshot_count; i++) {
        struct snapline l = snapline_of(&s, &s.snapshots[i]);
        snapline_json(&l, &j);
    }
    json_end_list(&j);
    json_end_object(&j);
    call_json(c, &text);
}

/* --- gc --- */

static void on_collected(void *arg, const struct msg_deed_done *d)
{
    struct call *c = arg;
    own_buf text = {0};
    buf_init(&text, LIST_BYTES_MAX);
    if (d->code == 0 && !call_number(c, "dry_run", 0))
        images_collected(c, d->text);
    buf_add_text(&text, d->text);
    if (d->code != 0)
        call_refuse(c, d->code < PALE_CODE_COUNT ? (enum pale_code)d->code : PALE_PROTOCOL, "%s", d->text);
    else
        call_json(c, &text);
    call_drop(c);
}

void op_gc(struct call *c)
{
    const struct msg_deed m = {
        .kind = DEED_GC, .caller = call_caller(c), .images = call_number(c, "images", 0) != 0, .dry = call_number(c, "dry_run", 0) != 0};
    call_hold(c);
    fleet_deed(&c->world->fleet, &m, on_collected, c);
}
