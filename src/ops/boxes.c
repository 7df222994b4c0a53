/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the operations on boxes as a whole: list, create, ensure, inspect, start, stop, delete, rename, terms. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/path.h"
#include "box/life.h"
#include "ops/ops.h"
#include "ops/shown.h"
#include "ops/talk.h"

#define LIST_BYTES_MAX (8u << 20)

static void answer_box(struct call *c, const struct core_box *b)
{
    own_buf text = {0};
    struct json j;
    buf_init(&text, 65536);
    json_start(&j, &text);
    shown_one(&j, c, b);
    call_json(c, &text);
}

/* The end of most of these: how the box stands, or why not. */
static void on_done(void *arg, const struct core_answer *a)
{
    struct call *c = arg;
    if (!c->gone && a->code != PALE_OK)
        call_refuse(c, a->code, "%s", a->text);
    else if (!c->gone && a->box && c->op->output == OUTPUT_JSON)
        answer_box(c, a->box);
    else if (!c->gone)
        call_nothing(c);
    call_drop(c);
}

bool boxes_tenant(struct call *c, const char **ret)
{
    *ret = call_text(c, "tenant", NULL);
    if (!*ret || c->who.scope == CALLER_OPERATOR || strcmp(*ret, c->who.tenant) == 0)
        return true;
    call_refuse(c, PALE_DENIED, "tenant: only an operator names one; leave it out, this token stands for %s",
                c->who.tenant[0] ? c->who.tenant : "a box");
    return false;
}

void op_box_list(struct call *c)
{
    struct core *core = c->world->fleet.core;
    const char *tenant;
    if (!boxes_tenant(c, &tenant))
        return;
    own_buf text = {0};
    struct json j;
    buf_init(&text, LIST_BYTES_MAX);
    json_start(&j, &text);
    json_begin_object(&j, NULL);
    json_begin_list(&j, "items");
    for (const struct core_box *b = core_after(core, "", "", ""); b; b = core_after(core, b->tenant, b->name, b->id))
        if (b->id[0] && talk_sees(&c->who, b) && (!tenant || strcmp(tenant, b->tenant) == 0))
            shown_box(&j, NULL, c, b);
    json_end_list(&j);
    json_end_object(&j);
    call_json(c, &text);
}

/* --- create --- */

/* The whole of what was asked, so that the same key with another request is noticed. */
static void digest(const struct fleet_order *o, uint64_t ttl_ms, uint8_t ret[SHA256_BYTES])
{
    struct sha256 h;
    char numbers[100];
    const char *parts[] = {o->name, o->policy, o->sets, numbers};
    /* A moment of expiry is not the same twice; what was asked for is how long. */
    snprintf(numbers, sizeof(numbers), "%lld %llu %d%s", (long long)o->idle_ms, (unsigned long long)ttl_ms, o->start,
             o->by_hand ? " by hand" : "");
    sha256_init(&h);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        sha256_add(&h, parts[i], strlen(parts[i]) + 1);
    sha256_final(&h, ret);
}

static bool put_line(struct buf *b, const char *key, const char *value)
{
    if (!key[0] || strpbrk(key, "\t\n") || strpbrk(value, "\t\n"))
        return false;
    buf_addf(b, "%s\t%s\n", key, value);
    return true;
}

int boxes_sets(const json_t *map, struct buf *ret, struct pale_err *e)
{
    const char *key;
    json_t *v, *item;
    size_t i;
    bool good = true;
    json_object_foreach((json_t *)map, key, v)
    {
        if (json_is_string(v))
            good = good && put_line(ret, key, json_string_value(v));
        json_array_foreach(v, i, item) good = good && put_line(ret, key, json_string_value(item));
    }
    if (!good)
        return err_set(e, PALE_BAD_INPUT, "set: no value of a policy holds a tab or a line break");
    return ret->failed ? err_set(e, PALE_LIMIT, "set: more than a policy can hold") : 0;
}

static int make_name(char ret[BOX_NAME_MAX + 1], struct pale_err *e)
{
    uint8_t random[6];
    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return err_os(e, "getrandom");
    snprintf(ret, BOX_NAME_MAX + 1, "box-%02x%02x%02x%02x%02x%02x", random[0], random[1], random[2], random[3], random[4], random[5]);
    return 0;
}

/* A name that nobody gave is the same for the same key, or asking twice would make two. */
static int choose_name(const struct call *c, char ret[BOX_NAME_MAX + 1], struct pale_err *e)
{
    char hex[SHA256_HEX];
    const char *name = c->op->run == op_box_ensure ? call_param(c, "box") : call_text(c, "name", NULL);
    if (name && !path_is_box_name(name))
        return err_set(e, PALE_BAD_INPUT, "name: 1 to %d of a-z, 0-9 and '-', and not beginning with '-'", BOX_NAME_MAX);
    if (name)
        snprintf(ret, BOX_NAME_MAX + 1, "%s", name);
    else if (c->key[0]) {
        sha256_hex(c->key, strlen(c->key), hex);
        snprintf(ret, BOX_NAME_MAX + 1, "box-%.12s", hex);
    } else
        return make_name(ret, e);
    return 0;
}

/* What is to be made, as an order says it. */
struct wish {
    char name[BOX_NAME_MAX + 1];
    const char *tenant;
    char *policy; /* NULL: the defaults */
    struct buf sets;
};

static void wish_done(struct wish *w)
{
    free(w->policy);
    buf_done(&w->sets);
}

/* False: the call is answered. */
static bool read_wish(struct call *c, struct wish *ret)
{
    struct pale_err e;
    const struct value *policy = call_value(c, "policy"), *set = call_value(c, "set");
    buf_init(&ret->sets, POLICY_TEXT_MAX);
    if (!boxes_tenant(c, &ret->tenant))
        return false;
    if (!ret->tenant)
        ret->tenant = c->who.tenant;
    if (ret->tenant[0] && !path_is_box_name(ret->tenant)) {
        call_refuse(c, PALE_BAD_INPUT, "tenant: 1 to %d of a-z, 0-9 and '-'", BOX_NAME_MAX);
        return false;
    }
    if (choose_name(c, ret->name, &e) < 0 || (set->given && boxes_sets(set->json, &ret->sets, &e) < 0)) {
        call_fail(c, &e);
        return false;
    }
    ret->policy = policy->given ? json_dumps(policy->json, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    if (policy->given && !ret->policy) {
        call_refuse(c, PALE_NO_MEMORY, "out of memory");
        return false;
    }
    return true;
}

static bool is_ensured(struct call *c)
{
    return c->op->run == op_box_ensure || call_number(c, "ensure", 0) != 0;
}

static int64_t expiry(struct call *c)
{
    uint64_t ttl = call_number(c, "ttl", 0);
    return ttl ? (int64_t)clock_unix_ms() + (int64_t)ttl : 0;
}

/* It is up, and its times are those of this request, if that says any. */
static void on_used(void *arg, const struct core_answer *a)
{
    struct call *c = arg;
    int64_t idle = (int64_t)call_number(c, "idle", 0), expires = expiry(c);
    if (c->gone || a->code != PALE_OK || !a->box || (!idle && !expires))
        return on_done(c, a);
    char id[BOX_ID_LEN + 1];
    memcpy(id, a->box->id, sizeof(id));
    fleet_set_terms(&c->world->fleet, id, expires ? expires : a->box->terms.expires_unix_ms, idle ? idle : a->box->terms.idle_ms, on_done,
                    c);
}

static void on_compared(void *arg, const struct msg_deed_done *d)
{
    struct call *c = arg;
    struct fleet *f = &c->world->fleet;
    const struct core_box *b = NULL;
    if (d->code == 0) {
        fleet_look(f, d->id);
        b = core_by_id(f->core, d->id);
    }
    if (!c->gone && d->code != 0)
        call_refuse(c, d->code < PALE_CODE_COUNT ? (enum pale_code)d->code : PALE_PROTOCOL, "%s", d->text);
    else if (!c->gone && !b)
        call_refuse(c, PALE_BUSY, "the box was there and is gone; try again");
    if (c->gone || !b)
        return call_drop(c);
    if (call_number(c, "start", 1) != 0)
        return fleet_use(f, d->id, call_caller(c), on_used, c);
    on_used(c, &(struct core_answer){.code = PALE_OK, .text = "", .box = b});
}

/* A box of that name is there which this request has not made: the command line has, or another request. It will do if it is the same. */
static void compare(struct call *c)
{
    CLEANUP(wish_done) struct wish w = {0};
    if (!read_wish(c, &w))
        return call_drop(c);
    struct msg_deed m = {.kind = DEED_COMPARE,
                         .id = "",
                         .name = w.name,
                         .tenant = w.tenant,
                         .policy = w.policy ? w.policy : "",
                         .sets = buf_text(&w.sets),
                         .by_hand = call_number(c, "autosave", 1) == 0,
                         .caller = call_caller(c)};
    fleet_deed(&c->world->fleet, &m, on_compared, c);
}

/* It was to be started: the answer waits until its keeper has told that it is up, and does not say "stopped" meanwhile. */
static void on_made(void *arg, const struct core_answer *a)
{
    struct call *c = arg;
    char id[BOX_ID_LEN + 1];
    if (!c->gone && a->code == PALE_EXISTS && is_ensured(c))
        return compare(c);
    if (c->gone || a->code != PALE_OK || !a->box || !a->box->id[0] || a->box->state == CORE_UP || call_number(c, "start", 1) == 0)
        return on_done(c, a);
    memcpy(id, a->box->id, sizeof(id));
    fleet_use(&c->world->fleet, id, call_caller(c), on_done, c);
}

static void create(struct call *c)
{
    CLEANUP(wish_done) struct wish w = {0};
    if (c->who.scope == CALLER_BOX)
        return call_refuse(c, PALE_DENIED, "a box's token makes no boxes");
    if (!read_wish(c, &w))
        return;
    struct fleet_order o = {.tenant = w.tenant,
                            .name = w.name,
                            .key = c->key,
                            .policy = w.policy ? w.policy : "",
                            .sets = buf_text(&w.sets),
                            .caller = call_caller(c),
                            .expires_unix_ms = expiry(c),
                            .idle_ms = (int64_t)call_number(c, "idle", 0),
                            .ensure = is_ensured(c),
                            .start = call_number(c, "start", 1) != 0,
                            .by_hand = call_number(c, "autosave", 1) == 0};
    digest(&o, call_number(c, "ttl", 0), o.asked);
    call_hold(c);
    fleet_create(&c->world->fleet, &o, on_made, c);
}

void op_box_create(struct call *c)
{
    create(c);
}

void op_box_ensure(struct call *c)
{
    create(c);
}

/* --- one box --- */

void op_box_inspect(struct call *c)
{
    const struct core_box *b = talk_find(c);
    if (b)
        answer_box(c, b);
}

static void act(struct call *c, void (*deed)(struct fleet *f, const char *id, const char *caller, fleet_done *done, void *arg))
{
    const struct core_box *b = talk_find(c);
    char id[BOX_ID_LEN + 1];
    if (!b)
        return;
    memcpy(id, b->id, sizeof(id));
    call_hold(c);
    deed(&c->world->fleet, id, call_caller(c), on_done, c);
}

void op_box_start(struct call *c)
{
    act(c, fleet_use);
}

void op_box_stop(struct call *c)
{
    act(c, fleet_stop);
}

/* A box whose project is for review may hold work that exists nowhere else. */
static bool is_for_review(const char *id)
{
    struct place p;
    bool is = false;
    return place_by_id(id, &p, NULL) == 0 && life_has_line(&p, "project.mode review", &is, NULL) == 0 && is;
}

static void on_looked(void *arg, const struct msg_deed_done *d)
{
    struct call *c = arg;
    const struct core_box *b = d->code == 0 ? core_by_id(c->world->fleet.core, d->id) : NULL;
    if (!c->gone && d->code != 0)
        call_refuse(c, d->code < PALE_CODE_COUNT ? (enum pale_code)d->code : PALE_PROTOCOL, "%s", d->text);
    else if (!c->gone && !b)
        call_refuse(c, PALE_NOT_FOUND, "there is no such box");
    if (c->gone || !b)
        return call_drop(c);
    fleet_remove(&c->world->fleet, d->id, call_caller(c), on_done, c);
}

void op_box_remove(struct call *c)
{
    const struct core_box *b = talk_find(c);
    char id[BOX_ID_LEN + 1];
    if (!b)
        return;
    if (call_number(c, "force", 0) != 0 || !is_for_review(b->id))
        return act(c, fleet_remove);
    memcpy(id, b->id, sizeof(id));
    struct msg_deed m = {
        .kind = DEED_UNLANDED, .id = id, .name = "", .tenant = b->tenant, .policy = "", .born = b->born, .caller = call_caller(c)};
    call_hold(c);
    fleet_deed(&c->world->fleet, &m, on_looked, c);
}

/* Every process of it stands still, or goes on; then it is told how it stands. */
static void on_frozen(struct talk *a, const struct frame *f)
{
    struct call *c = a->call;
    const struct core_box *b = core_by_id(c->world->fleet.core, a->box);
    if (f->type != TELL_DONE)
        return call_refuse(c, PALE_PROTOCOL, "the keeper's answer cannot be read");
    if (b && b->state == CORE_UP) /* its lookout will hear of it in a moment */
        core_frozen(c->world->fleet.core, a->box, a->type == ASK_FREEZE);
    if (b)
        answer_box(c, b);
    else
        call_refuse(c, PALE_GONE, "the box is gone");
}

static void freeze(struct call *c, bool on)
{
    struct talk *a = talk_new(c, sizeof(*a));
    if (!a)
        return;
    a->frame = on_frozen;
    talk_send(a, on ? ASK_FREEZE : ASK_THAW, false);
}

void op_box_freeze(struct call *c)
{
    freeze(c, true);
}

void op_box_thaw(struct call *c)
{
    freeze(c, false);
}

void op_box_rename(struct call *c)
{
    const struct core_box *b = talk_find(c);
    const char *name = call_text(c, "name", "");
    char id[BOX_ID_LEN + 1];
    if (!b)
        return;
    if (!path_is_box_name(name))
        return call_refuse(c, PALE_BAD_INPUT, "name: 1 to %d of a-z, 0-9 and '-', and not beginning with '-'", BOX_NAME_MAX);
    memcpy(id, b->id, sizeof(id));
    call_hold(c);
    fleet_rename(&c->world->fleet, id, name, call_caller(c), on_done, c);
}

/* 0 is never. */
static bool is_later(int64_t t, int64_t than)
{
    return than != 0 && (t == 0 || t > than);
}

void op_box_terms(struct call *c)
{
    const struct core_box *b = talk_find(c);
    char id[BOX_ID_LEN + 1];
    if (!b)
        return;
    memcpy(id, b->id, sizeof(id));
    const struct value *ttl = call_value(c, "ttl"), *idle = call_value(c, "idle");
    int64_t expires = b->has_terms ? b->terms.expires_unix_ms : 0, quiet = b->has_terms ? b->terms.idle_ms : 0;
    if (ttl->given)
        expires = ttl->number ? (int64_t)clock_unix_ms() + (int64_t)ttl->number : 0;
    if (idle->given)
        quiet = (int64_t)idle->number;
    /* Whoever is inside only narrows: sooner, never later. */
    if (c->who.scope == CALLER_BOX && b->has_terms && (is_later(expires, b->terms.expires_unix_ms) || is_later(quiet, b->terms.idle_ms)))
        return call_refuse(c, PALE_DENIED, "a box's own token may make its time shorter, not longer");
    call_hold(c);
    fleet_set_terms(&c->world->fleet, id, expires, quiet, on_done, c);
}
