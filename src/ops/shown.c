/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the shapes of answers. */
#include "ops/shown.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/quote.h"
#include "box/audit.h"
#include "box/cutoff.h"
#include "wire/result_json.h"
#include "ops/world.h"

static void stamp(struct json *j, const char *key, int64_t unix_ms)
{
    char text[40];
    struct tm tm;
    time_t t = (time_t)(unix_ms / 1000);
    if (unix_ms <= 0 || !gmtime_r(&t, &tm))
        return json_put_null(j, key);
    size_t n = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(text + n, sizeof(text) - n, ".%03dZ", (int)(unix_ms % 1000));
    json_text(j, key, text);
}

/* By the files that say so: the keeper is told of them, and tells us, a moment later. */
static unsigned cut_of(const struct fleet *f, const struct core_box *b)
{
    char dir[PATH_BYTES_MAX + BOX_ID_LEN + 8];
    snprintf(dir, sizeof(dir), "%s/boxes/%s", f->state_dir, b->id);
    return b->id[0] ? cutoff_of(dir, f->state_dir) : 0;
}

static void box_fields(struct json *j, struct call *c, const struct core_box *b, const struct lookout *w)
{
    json_text(j, "id", b->id);
    json_text(j, "name", b->name);
    json_text(j, "scope", b->project ? "project" : b->tenant[0] ? "tenant" : "user");
    if (c->who.scope == CALLER_OPERATOR && b->tenant[0])
        json_text(j, "tenant", b->tenant);
    json_text(j, "state", fleet_state_name(b));
    json_u64(j, "jobs", b->jobs);
    if (w && w->up)
        stamp(j, "started", (int64_t)w->started_unix_ms);
    if (b->has_terms && b->terms.expires_unix_ms)
        stamp(j, "expires", b->terms.expires_unix_ms);
    if (b->has_terms && b->terms.idle_ms)
        json_fixed(j, "idle_seconds", (uint64_t)b->terms.idle_ms, 3);
    unsigned cut = cut_of(&c->world->fleet, b);
    if (cut)
        json_text(j, "cut", cutoff_name(cut));
}

static void network_fields(struct json *j, const struct lookout *w)
{
    json_u64(j, "open", w->net_open);
    json_u64(j, "connections", w->net_connections);
    json_u64(j, "refused", w->net_refused);
    json_u64(j, "bytes_in", w->net_in);
    json_u64(j, "bytes_out", w->net_out);
}

void shown_box(struct json *j, const char *key, struct call *c, const struct core_box *b)
{
    json_begin_object(j, key);
    box_fields(j, c, b, lookout_of(&c->world->fleet, b->id));
    json_end_object(j);
}

void shown_one(struct json *j, struct call *c, const struct core_box *b)
{
    const struct lookout *w = lookout_of(&c->world->fleet, b->id);
    bool all = c->who.scope == CALLER_OPERATOR;
    struct place p;
    json_begin_object(j, NULL);
    box_fields(j, c, b, w);
    if (w && w->up) {
        json_u64(j, "ended", w->ended);
        json_text(j, "memory_limit_held_by", w->memory_by);
    }
    if (w && w->up && w->has_network) {
        json_begin_object(j, "network");
        network_fields(j, w);
        json_end_object(j);
    }
    if (all && w && w->up) {
        json_u64(j, "keeper_pid", w->keeper_pid);
        json_u64(j, "init_pid", w->init_pid);
    }
    char log[PATH_BYTES_MAX + BOX_ID_LEN + 16];
    snprintf(log, sizeof(log), "%s/boxes/%s/audit", c->world->fleet.state_dir, b->id);
    if (b->id[0] && audit_gaps(log))
        json_u64(j, "audit_gaps", audit_gaps(log));
    if (all && place_by_id(b->id, &p, NULL) == 0) {
        json_text(j, "data", p.data);
        json_text(j, "state_dir", p.state);
    }
    json_end_object(j);
}

void shown_job(struct json *j, const char *key, const struct msg_job *m)
{
    json_begin_object(j, key);
    json_u64(j, "id", m->id);
    json_text(j, "state", msg_job_state(m));
    json_text(j, "command", m->command);
    json_bool(j, "tty", m->tty);
    json_bool(j, "lasts", m->lasts || m->detached);
    if (m->key[0])
        json_text(j, "key", m->key);
    stamp(j, "started", (int64_t)m->started_unix_ms);
    json_u64(j, "input_bytes", m->in_bytes);
    if (m->state == JOB_ENDED) {
        struct msg_result r = msg_job_result(m);
        json_begin_object(j, "result");
        result_json(j, &r);
        json_end_object(j);
    } else
        json_u64(j, "output_bytes", m->out_bytes);
    json_end_object(j);
}

void shown_bytes_as(struct json *j, const char *key, const void *p, size_t n)
{
    result_json_bytes_as(j, key, p, n);
}

void shown_bytes(struct json *j, const void *p, size_t n)
{
    shown_bytes_as(j, "data", p, n);
}

bool shown_piece(struct call *c, const char *event, struct buf *json)
{
    own_buf b = {0};
    buf_init(&b, json->len + 128);
    if (c->wants_events)
        buf_addf(&b, "event: %s\ndata: ", event);
    buf_add(&b, json->data, json->len);
    buf_add_text(&b, c->wants_events ? "\n\n" : "\n");
    if (b.failed || json->failed) {
        call_end(c, false);
        return false;
    }
    return call_write(c, b.data, b.len);
}

void shown_begin(struct call *c)
{
    call_begin(c, c->wants_events ? "text/event-stream" : "application/x-ndjson", "");
}

void shown_number(struct buf *ret, const char *event, const char *name, uint64_t v)
{
    struct json j;
    buf_init(ret, 256);
    json_start(&j, ret);
    json_begin_object(&j, NULL);
    json_text(&j, "event", event);
    json_u64(&j, name, v);
    json_end_object(&j);
}

void shown_offset(struct shown_from *o, uint64_t first)
{
    o->skip = first < o->wanted ? o->wanted - first : 0;
    o->wanted = first > o->wanted ? first : o->wanted;
}

size_t shown_skip(struct shown_from *o, size_t n)
{
    size_t skip = o->skip < n ? (size_t)o->skip : n;
    o->skip -= skip;
    return skip;
}
