/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the operations that look on: health, metrics, events. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "ops/talk.h"
#include "ops/ops.h"
#include "ops/shown.h"

#define METRICS_MAX (8u << 20)

void op_health(struct call *c)
{
    own_buf b = {0};
    struct json j;
    size_t boxes = 0;
    struct core *core = c->world->fleet.core;
    for (const struct core_box *x = core_after(core, "", "", ""); x; x = core_after(core, x->tenant, x->name, x->id))
        boxes += talk_sees(&c->who, x);
    buf_init(&b, 1024);
    json_start(&j, &b);
    json_begin_object(&j, NULL);
    json_text(&j, "status", "ok");
    json_text(&j, "version", PALE_VERSION);
    json_u64(&j, "boxes", boxes);
    if (c->who.scope == CALLER_OPERATOR) {
        json_u64(&j, "live", c->world->fleet.live);
        json_u64(&j, "pid", (uint64_t)getpid());
        json_text(&j, "state_dir", c->world->fleet.state_dir);
    }
    json_end_object(&j);
    call_json(c, &b);
}

/* --- metrics, in the text form of Prometheus --- */

static void head(struct buf *b, const char *name, const char *type, const char *help)
{
    buf_addf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void metric(struct buf *b, const char *name, const char *type, const char *help, uint64_t v)
{
    head(b, name, type, help);
    buf_addf(b, "%s %llu\n", name, (unsigned long long)v);
}

struct column {
    const char *name, *type, *help;
    uint64_t (*value)(const struct core_box *b, const struct lookout *w);
};

static uint64_t col_up(const struct core_box *b, const struct lookout *w)
{
    (void)w;
    return b->state == CORE_UP;
}

static uint64_t col_jobs(const struct core_box *b, const struct lookout *w)
{
    (void)w;
    return b->jobs;
}

static uint64_t col_ended(const struct core_box *b, const struct lookout *w)
{
    (void)b;
    return w ? w->ended : 0;
}

static uint64_t col_output(const struct core_box *b, const struct lookout *w)
{
    (void)b;
    return w ? w->out_bytes : 0;
}

static uint64_t col_cpu(const struct core_box *b, const struct lookout *w)
{
    (void)b;
    return w ? w->cpu_us / 1000 : 0;
}

static uint64_t col_cut(const struct core_box *b, const struct lookout *w)
{
    (void)b;
    return w && w->cut;
}

static uint64_t col_net_open(const struct core_box *b, const struct lookout *w)
{
    (void)b;
    return w ? w->net_open : 0;
}

static uint64_t col_net_connections(const struct core_box *b, const struct lookout *w)
{
    (void)b;
    return w ? w->net_connections : 0;
}

static uint64_t col_net_refused(const struct core_box *b, const struct lookout *w)
{
    (void)b;
    return w ? w->net_refused : 0;
}

static uint64_t col_net_in(const struct core_box *b, const struct lookout *w)
{
    (void)b;
    return w ? w->net_in : 0;
}

static uint64_t col_net_out(const struct core_box *b, const struct lookout *w)
{
    (void)b;
    return w ? w->net_out : 0;
}

static const struct column columns[] = {
    {"pale_box_up", "gauge", "1 while the box runs.", col_up},
    {"pale_box_jobs", "gauge", "Commands that run in the box.", col_jobs},
    {"pale_box_jobs_ended_total", "counter", "Commands that have ended since the box was started.", col_ended},
    {"pale_box_output_bytes_total", "counter", "Output of commands that ended since the daemon watches the box.", col_output},
    {"pale_box_cpu_milliseconds_total", "counter", "CPU time of commands that ended since the daemon watches the box.", col_cpu},
    {"pale_box_cut", "gauge", "1 while the box runs and is cut off from every network.", col_cut},
    {"pale_box_connections_open", "gauge", "Connections of the box's network.", col_net_open},
    {"pale_box_connections_total", "counter", "Connections since the box was started.", col_net_connections},
    {"pale_box_connections_refused_total", "counter", "Connections and names that were refused since then.", col_net_refused},
    {"pale_box_network_in_bytes_total", "counter", "Bytes that came into the box since then.", col_net_in},
    {"pale_box_network_out_bytes_total", "counter", "Bytes that left the box since then.", col_net_out},
};

static void box_metrics(struct call *c, struct buf *b)
{
    struct core *core = c->world->fleet.core;
    for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
        head(b, columns[i].name, columns[i].type, columns[i].help);
        for (const struct core_box *x = core_after(core, "", "", ""); x; x = core_after(core, x->tenant, x->name, x->id))
            if (x->id[0])
                buf_addf(b, "%s{box=\"%s\",name=\"%s\",tenant=\"%s\"} %llu\n", columns[i].name, x->id, x->name, x->tenant,
                         (unsigned long long)columns[i].value(x, lookout_of(&c->world->fleet, x->id)));
    }
}

void op_metrics(struct call *c)
{
    const struct world *w = c->world;
    own_buf b = {0};
    buf_init(&b, METRICS_MAX);
    metric(&b, "pale_boxes_live", "gauge", "Boxes that run.", w->fleet.live);
    metric(&b, "pale_http_requests_total", "counter", "Requests since the daemon began.", w->counts.requests);
    metric(&b, "pale_http_connections", "gauge", "Connections now.", w->counts.connections);
    metric(&b, "pale_execs_total", "counter", "Commands begun through the daemon.", w->fleet.counts.execs);
    metric(&b, "pale_creates_total", "counter", "Boxes asked for through the daemon.", w->fleet.counts.creates);
    metric(&b, "pale_removes_total", "counter", "Removals asked for through the daemon.", w->fleet.counts.removes);
    metric(&b, "pale_deeds_total", "counter", "Deeds of the steward.", w->fleet.counts.deeds);
    metric(&b, "pale_deed_failures_total", "counter", "Deeds that failed.", w->fleet.counts.deed_failures);
    metric(&b, "pale_started_seconds", "gauge", "When the daemon began, since 1970.", w->started_unix_ms / 1000);
    box_metrics(c, &b);
    if (b.failed)
        return call_refuse(c, PALE_LIMIT, "the metrics are longer than %u bytes", METRICS_MAX);
    call_text_answer(c, "text/plain; version=0.0.4; charset=utf-8", &b);
}

/* --- events --- */

struct feed {
    struct listener listener;
    struct call *call;
    uint64_t seen;
    bool waits; /* the client must take some first */
};

static bool may_hear(const struct call *c, const struct event *ev)
{
    switch (c->who.scope) {
    case CALLER_OPERATOR:
        return true;
    case CALLER_TENANT:
        return strcmp(ev->tenant, c->who.tenant) == 0;
    case CALLER_BOX:
        return strcmp(ev->box, c->who.box) == 0;
    }
    return false;
}

static bool wants(const struct call *c, const struct event *ev)
{
    const char *box = call_text(c, "box", "");
    return may_hear(c, ev) && (!box[0] || strcmp(box, ev->box) == 0);
}

static bool send_event(struct call *c, uint64_t number, const char *kind, const char *text)
{
    own_buf b = {0};
    buf_init(&b, 4096);
    if (c->wants_events || !c->wants_stream)
        buf_addf(&b, "id: %llu-%llu\nevent: %s\ndata: %s\n\n", (unsigned long long)c->world->fleet.events.epoch, (unsigned long long)number,
                 kind, text);
    else
        buf_addf(&b, "%s\n", text);
    return call_write(c, b.data, b.len);
}

/* Everything the client has not seen, as far as it takes it. */
static void catch_up(struct feed *f)
{
    struct call *c = f->call;
    const struct event *ev;
    bool missed = false;
    call_hold(c);
    while (!f->waits && (ev = events_after(&c->world->fleet.events, f->seen, &missed))) {
        uint64_t number = ev->number;
        bool room = true;
        if (missed)
            room = send_event(c, number - 1, "gap", "{\"event\":\"gap\"}");
        if (wants(c, ev))
            room = send_event(c, number, ev->kind, ev->text);
        if (!c->state)
            break;
        f->seen = number;
        f->waits = !room;
    }
    call_drop(c);
}

static void on_heard(struct listener *l, const struct event *ev)
{
    (void)ev;
    catch_up((struct feed *)l);
}

static void on_room(struct call *c)
{
    struct feed *f = c->state;
    if (!f)
        return;
    f->waits = false;
    catch_up(f);
}

static void on_left(struct call *c)
{
    struct feed *f = c->state;
    c->state = NULL;
    events_unlisten(&c->world->fleet.events, &f->listener);
    free(f);
}

/* Where a client was that comes back: epoch and number. Of another life of the daemon nothing is left, which it is told. */
static uint64_t start_at(struct call *c, bool *ret_gap)
{
    const struct events *e = &c->world->fleet.events;
    char text[64];
    uint64_t epoch = 0, number = 0;
    const char *since = c->last_event[0] ? c->last_event : call_text(c, "since", "");
    *ret_gap = false;
    if (!since[0])
        return e->last;
    snprintf(text, sizeof(text), "%s", since);
    char *dash = strchr(text, '-');
    if (dash)
        *dash = 0;
    if (dash && number_u64(text, UINT64_MAX, &epoch) && number_u64(dash + 1, UINT64_MAX, &number) && epoch == e->epoch && number <= e->last)
        return number;
    *ret_gap = true;
    return 0;
}

void op_events(struct call *c)
{
    bool gap = false;
    struct feed *f = calloc(1, sizeof(*f));
    if (!f)
        return call_refuse(c, PALE_NO_MEMORY, "out of memory");
    f->call = c;
    f->listener.heard = on_heard;
    f->seen = start_at(c, &gap);
    c->state = f;
    c->left = on_left;
    c->room = on_room;
    events_listen(&c->world->fleet.events, &f->listener);
    call_hold(c);
    call_begin(c, c->wants_stream && !c->wants_events ? "application/x-ndjson" : "text/event-stream", "");
    if (c->state && gap)
        (void)send_event(c, f->seen, "gap", "{\"event\":\"gap\"}");
    else if (c->state && !c->wants_stream)
        (void)call_write(c, ":\n\n", 3); /* so that a client sees it has begun */
    if (c->state)
        catch_up(f);
    call_drop(c);
}
