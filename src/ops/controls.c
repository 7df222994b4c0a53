/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the operations on the network of boxes: what was counted, and cutting boxes off. */
#include <stdlib.h>
#include <string.h>

#include "base/jsonread.h"
#include "box/cutoff.h"
#include "fleet/order.h"
#include "ops/ops.h"
#include "ops/shown.h"
#include "ops/talk.h"

#define NETWORK_BYTES_MAX (1u << 20)

/* --- what was counted --- */

struct counting {
    struct talk talk;
    struct buf text;
    struct json json; /* of the hosts, in an open list */
};

static void on_freed(struct talk *a)
{
    buf_done(&((struct counting *)a)->text);
}

static void add_host(struct json *j, const struct msg_host *m)
{
    json_begin_object(j, NULL);
    json_text(j, "host", m->name);
    json_u64(j, "port", m->port);
    json_u64(j, "connections", m->connections);
    json_u64(j, "refused", m->refused);
    json_u64(j, "bytes_in", m->in);
    json_u64(j, "bytes_out", m->out);
    json_end_object(j);
}

/* Hosts first, then the sum. */
static void on_counted(struct talk *a, const struct frame *f)
{
    struct counting *x = (struct counting *)a;
    struct call *c = a->call;
    struct msg_host host;
    struct msg_info info;
    if (f->type == TELL_HOST && msg_host_parse(f->data, f->len, &host))
        return add_host(&x->json, &host);
    if (f->type != TELL_INFO || !msg_info_parse(f->data, f->len, &info))
        return call_refuse(c, PALE_PROTOCOL, "the keeper's answer cannot be read");
    json_end_list(&x->json);
    json_u64(&x->json, "open", info.net_open);
    json_u64(&x->json, "connections", info.net_connections);
    json_u64(&x->json, "refused", info.net_refused);
    json_u64(&x->json, "bytes_in", info.net_in);
    json_u64(&x->json, "bytes_out", info.net_out);
    json_end_object(&x->json);
    if (!info.has_network)
        return call_refuse(c, PALE_NOT_FOUND, "box %s has no network", info.name);
    call_json(c, &x->text);
}

void op_box_network(struct call *c)
{
    struct counting *x = talk_new(c, sizeof(*x));
    if (!x)
        return;
    x->talk.frame = on_counted;
    x->talk.done = on_freed;
    buf_init(&x->text, NETWORK_BYTES_MAX);
    json_start(&x->json, &x->text);
    json_begin_object(&x->json, NULL);
    json_begin_list(&x->json, "hosts");
    talk_send(&x->talk, ASK_NETWORK, false);
}

/* --- cutting off --- */

/* Which box it was about, until the deed is done. */
struct cutting {
    struct call *call;
    char id[BOX_ID_LEN + 1];
};

static void on_cut(void *arg, const struct msg_deed_done *d)
{
    struct cutting *x = arg;
    struct call *c = x->call;
    const struct core_box *b = core_by_id(c->world->fleet.core, x->id);
    own_buf text = {0};
    struct json j;
    buf_init(&text, 65536);
    json_start(&j, &text);
    if (d->code != 0)
        call_refuse(c, d->code < PALE_CODE_COUNT ? (enum pale_code)d->code : PALE_PROTOCOL, "%s", d->text);
    else if (!b)
        call_refuse(c, PALE_GONE, "the box is gone");
    else {
        shown_one(&j, c, b);
        call_json(c, &text);
    }
    call_drop(c);
    free(x);
}

static void cut(struct call *c, bool on)
{
    const struct core_box *b = talk_find(c);
    struct cutting *x = b ? calloc(1, sizeof(*x)) : NULL;
    if (b && !x)
        call_refuse(c, PALE_NO_MEMORY, "out of memory");
    if (!x)
        return;
    x->call = c;
    memcpy(x->id, b->id, sizeof(x->id));
    const struct msg_deed m = {.kind = DEED_CUT, .id = x->id, .born = b->born, .count = on, .caller = call_caller(c)};
    call_hold(c);
    fleet_deed(&c->world->fleet, &m, on_cut, x);
}

void op_box_quarantine(struct call *c)
{
    cut(c, true);
}

void op_box_lift(struct call *c)
{
    cut(c, false);
}

static void on_panic(void *arg, const struct msg_deed_done *d)
{
    struct call *c = arg;
    own_buf text = {0};
    struct jsonread v;
    buf_init(&text, 4096);
    buf_add_text(&text, d->text);
    if (d->code != 0)
        call_refuse(c, d->code < PALE_CODE_COUNT ? (enum pale_code)d->code : PALE_PROTOCOL, "%s", d->text);
    else if (!jsonread_parse(d->text, strlen(d->text), &v))
        call_refuse(c, PALE_PROTOCOL, "what the steward tells cannot be read");
    else
        call_json(c, &text);
    call_drop(c);
}

static void cut_all(struct call *c, bool on)
{
    const struct msg_deed m = {.kind = DEED_PANIC, .id = "", .count = on, .caller = call_caller(c)};
    call_hold(c);
    fleet_deed(&c->world->fleet, &m, on_panic, c);
}

void op_panic(struct call *c)
{
    cut_all(c, true);
}

void op_panic_lift(struct call *c)
{
    cut_all(c, false);
}
