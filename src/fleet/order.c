/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the ordering of deeds. */
#include "fleet/order.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/handing.h"
#include "base/json.h"
#include "base/jsonread.h"
#include "base/own.h"
#include "box/place.h"

struct order {
    struct fleet *fleet;
    uint64_t number; /* of the core; 0: somebody else's */
    enum core_deed_kind kind;
    struct order_change change; /* of CORE_CHANGE */
    char box[BOX_ID_LEN + 1], caller[CALLER_MAX + 1];
    struct fleet_ears ears; /* part NULL: the deed is no stream */
    struct tether *link;
};

/* --- what is told of it --- */

/* The forks are there: they are known from now on, not only when the watch on the disk tells of them. */
static void see_forks(struct fleet *f, const char *text)
{
    struct jsonread v, items, item;
    char id[BOX_ID_LEN + 1];
    if (!jsonread_parse(text, strlen(text), &v) || !jsonread_get(&v, "items", &items))
        return;
    for (size_t pos = 0; jsonread_next(&items, &pos, NULL, &item);) {
        struct jsonread m;
        if (jsonread_get(&item, "id", &m))
            fleet_look(f, jsonread_text(&m, id, sizeof(id)));
    }
}

/* A snapshot that was taken, asked for or not, has a name in what the deed tells. */
static const char *taken(const char *text, const char *key, char ret[SNAPSHOT_NAME_MAX + 1])
{
    struct jsonread v, m;
    ret[0] = 0;
    if (jsonread_parse(text, strlen(text), &v) && jsonread_get(&v, key, &m))
        jsonread_text(&m, ret, SNAPSHOT_NAME_MAX + 1);
    return ret;
}

static void tell_past(struct order *o, const char *text)
{
    static const char *const names[DEED_KIND_END] = {[DEED_SNAPSHOT] = "snapshot.taken",
                                                     [DEED_RESTORE] = "box.restored",
                                                     [DEED_FORGET] = "snapshot.removed",
                                                     [DEED_FORK] = "box.forked",
                                                     [DEED_DISCARD] = "review.discarded"};
    const struct core_box *b = core_by_id(o->fleet->core, o->box);
    const struct order_change *x = &o->change;
    own_buf fields = {0};
    struct json j;
    char name[SNAPSHOT_NAME_MAX + 1];
    bool is_taking = x->kind == DEED_SNAPSHOT || x->kind == DEED_DISCARD;
    const char *snapshot = is_taking ? taken(text, x->kind == DEED_DISCARD ? "kept" : "snapshot", name) : x->snapshot;
    if (!b || (is_taking && !snapshot[0]))
        return; /* nothing had changed */
    buf_init(&fields, 400);
    json_start(&j, &fields);
    j.more[0] = true; /* it stands inside an object that has begun */
    if (snapshot[0])
        json_text(&j, "snapshot", snapshot);
    if (x->kind == DEED_FORK) {
        json_text(&j, "to", x->name);
        json_u64(&j, "count", x->count);
    }
    json_text(&j, "caller", o->caller);
    events_tell(&o->fleet->events, names[x->kind], b->id, b->tenant, b->name, fields.failed ? "" : buf_text(&fields));
}

static void end_for_core(struct order *o, const struct msg_deed_done *d)
{
    struct fleet *f = o->fleet;
    const char *event = o->kind == CORE_MAKE ? "box.made" : o->kind == CORE_RENAME ? "box.renamed" : NULL;
    enum pale_code code = d->code < PALE_CODE_COUNT ? (enum pale_code)d->code : PALE_PROTOCOL;
    if (code == PALE_OK && o->change.kind == DEED_FORK)
        see_forks(f, d->text);
    core_deed_done(f->core, o->number, code, d->text, d->id);
    const struct core_box *b = code == PALE_OK && event ? core_by_id(f->core, d->id) : NULL;
    if (b)
        events_tell(&f->events, event, b->id, b->tenant, b->name, "");
    if (code == PALE_OK && (o->kind == CORE_CHANGE || o->kind == CORE_STOP))
        tell_past(o, d->text);
    fleet_settle(f);
}

static void end(struct tether *l, const struct msg_deed_done *d)
{
    struct order *o = l->owner;
    struct fleet *f = o->fleet;
    f->counts.deeds++;
    f->streams -= o->ears.part != NULL;
    f->counts.deed_failures += d->code != 0;
    if (o->number)
        end_for_core(o, d);
    else
        o->ears.told(o->ears.arg, d);
    free(o);
    tether_close(l);
}

static void on_frame(struct tether *l, const struct frame *f)
{
    const struct order *o = l->owner;
    struct msg_deed_done d;
    if (f->type == DEED_PART && o->ears.part)
        return o->ears.part(o->ears.arg, f->data, f->len);
    if (f->type != DEED_DONE || !msg_deed_done_parse(f->data, f->len, &d))
        d = (struct msg_deed_done){.code = PALE_PROTOCOL, .text = "the deed's answer cannot be read", .id = "", .name = ""};
    end(l, &d);
}

static void on_gone(struct tether *l)
{
    end(l, &(struct msg_deed_done){.code = PALE_GONE, .text = "it ended before it was done; look whether it was", .id = "", .name = ""});
}

static void on_taken(struct tether *l)
{
    const struct order *o = l->owner;
    if (o->ears.taken)
        o->ears.taken(o->ears.arg);
}

static const struct tether_use use = {on_frame, on_gone, on_taken};

/* Hands one end of a new connection to the steward, who forks somebody to serve it. */
static int open_deed(struct fleet *f, int *ret_fd, struct pale_err *e)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return err_os(e, "make a socket pair");
    own_fd mine = pair[0], theirs = pair[1]; /* they block; we do not, by a flag at each call */
    ssize_t n = handing_send(f->steward_fd, "d", 1, theirs, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN)
        return err_set(e, PALE_BUSY, "too much is being done already; try again in a moment");
    if (n < 0) /* it has died, and so shall we; the next daemon is on its way */
        return err_set(e, PALE_BUSY, "the daemon is being started again; try again in a moment");
    *ret_fd = take_fd(&mine);
    return 0;
}

static int send_order(struct order *o, const struct msg_deed *m, struct pale_err *e)
{
    struct tether *l;
    struct record_writer w;
    int fd = -1;
    own_mem uint8_t *mem = malloc(FRAME_PAYLOAD_MAX);
    if (!mem)
        return err_nomem(e);
    record_start(&w, mem, FRAME_PAYLOAD_MAX);
    msg_deed_write(m, &w);
    if (w.full)
        return err_set(e, PALE_LIMIT, m->paths && m->paths[0] ? "the paths are too many" : "the policy is too long");
    int r = open_deed(o->fleet, &fd, e);
    if (r == 0)
        r = tether_take(o->fleet->loop, fd, &use, o, &l, e);
    if (r < 0)
        return r;
    o->link = l;
    if (tether_send(l, DEED_ASK, mem, w.len))
        return 0;
    tether_close(l);
    return err_set(e, PALE_GONE, "the steward does not listen");
}

int order_deed(struct fleet *f, const struct core_deed *d, const char *caller, struct pale_err *e)
{
    static const uint64_t kinds[CORE_DEED_KINDS] = {
        [CORE_MAKE] = DEED_MAKE,     [CORE_START] = DEED_START,   [CORE_STOP] = DEED_STOP,
        [CORE_REMOVE] = DEED_REMOVE, [CORE_RENAME] = DEED_RENAME, [CORE_CHANGE] = DEED_SNAPSHOT};
    static const struct order_payload nothing = {.policy = "", .sets = ""};
    static const struct order_change checkpoint = {.kind = DEED_SNAPSHOT};
    const struct order_payload *p = d->kind == CORE_MAKE ? d->payload : &nothing;
    const struct order_change *x = d->kind == CORE_CHANGE && d->payload ? d->payload : &checkpoint;
    struct order *o = calloc(1, sizeof(*o));
    if (!o)
        return err_nomem(e);
    *o = (struct order){.fleet = f, .number = d->number, .kind = d->kind, .change = *x};
    o->change.paths = NULL; /* they are the waiter's, who may be gone before the deed is done */
    snprintf(o->box, sizeof(o->box), "%s", d->id);
    snprintf(o->caller, sizeof(o->caller), "%s", caller);
    struct msg_deed m = {.kind = d->kind == CORE_CHANGE ? x->kind : kinds[d->kind],
                         .id = d->kind == CORE_MAKE ? "" : d->id,
                         .name = d->kind == CORE_RENAME ? d->new_name
                                 : x->kind == DEED_FORK ? x->name
                                                        : d->name,
                         .tenant = d->tenant,
                         .policy = p->policy,
                         .sets = p->sets,
                         .start = p->start,
                         .by_hand = p->by_hand,
                         .only_idle = d->only_idle,
                         .caller = caller,
                         .born = d->kind == CORE_MAKE ? 0 : d->born,
                         .snapshot = x->snapshot,
                         .count = x->count,
                         .force = x->force,
                         .again = x->again,
                         .paths = x->paths ? x->paths : "",
                         .automatic = x == &checkpoint};
    int r = send_order(o, &m, e);
    if (r < 0)
        free(o);
    return r;
}

void fleet_deed(struct fleet *f, const struct msg_deed *m, fleet_told *told, void *arg)
{
    struct pale_err e;
    struct order *o = calloc(1, sizeof(*o));
    if (o)
        *o = (struct order){.fleet = f, .ears = {.told = told, .arg = arg}};
    if (o && send_order(o, m, &e) == 0)
        return;
    if (!o)
        err_nomem(&e);
    free(o);
    told(arg, &(struct msg_deed_done){.code = e.code, .text = e.text, .id = "", .name = ""});
}

/* --- streams --- */

struct order *fleet_stream(struct fleet *f, const struct msg_deed *m, const struct fleet_ears *ears, struct pale_err *e)
{
    if (f->streams >= FLEET_STREAMS_MAX) {
        err_set(e, PALE_BUSY, "too much is being told, landed or built already; try again in a moment");
        return NULL;
    }
    struct order *o = calloc(1, sizeof(*o));
    if (!o) {
        err_nomem(e);
        return NULL;
    }
    *o = (struct order){.fleet = f, .ears = *ears};
    if (send_order(o, m, e) < 0) {
        free(o);
        return NULL;
    }
    f->streams++;
    return o;
}

void fleet_stream_pause(struct order *o, bool on)
{
    tether_pause(o->link, on);
}

void fleet_stream_close(struct order *o)
{
    o->fleet->streams--;
    tether_close(o->link);
    free(o);
}

bool fleet_stream_give(struct order *o, const void *p, size_t n, bool last)
{
    for (const uint8_t *at = p; n > 0;) {
        size_t part = n < FRAME_DATA_MAX ? n : FRAME_DATA_MAX;
        if (!tether_send(o->link, DEED_PART, at, part))
            return false;
        at += part;
        n -= part;
    }
    return !last || tether_send(o->link, DEED_PART, "", 0);
}

bool fleet_stream_waits(const struct order *o)
{
    return tether_unsent(o->link) > 0;
}
