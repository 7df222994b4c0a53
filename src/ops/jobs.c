/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the operations on commands that run or ran: list, inspect, wait, logs, input, signal, attach. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/number.h"
#include "ops/talk.h"
#include "ops/ops.h"
#include "ops/shown.h"

#define LIST_BYTES_MAX (4u << 20)

bool jobs_id(struct call *c, uint64_t *ret)
{
    if (number_u64(call_param(c, "job"), UINT64_MAX, ret) && *ret > 0)
        return true;
    call_refuse(c, PALE_NOT_FOUND, "there is no such job");
    return false;
}

static void put_ref(struct talk *a, const struct msg_job_ref *ref)
{
    struct record_writer w;
    if (!buf_reserve(&a->request, 256)) {
        a->request.failed = true;
        return;
    }
    record_start(&w, a->request.data, 256);
    msg_job_ref_write(ref, &w);
    a->request.len = w.len;
}

/* --- list, inspect, wait, signal: jobs as JSON --- */

struct listing {
    struct talk talk;
    uint64_t only; /* 0: all of them */
    bool found;
    struct buf text;
    struct json json;
    struct loop_timer timer;
    bool timed;
};

static void end_listing(struct talk *a)
{
    struct listing *l = (struct listing *)a;
    loop_disarm(&a->call->world->loop, &l->timer);
    buf_done(&l->text);
}

static void finish_listing(struct listing *l)
{
    struct call *c = l->talk.call;
    if (l->only && !l->found)
        return call_refuse(c, PALE_NOT_FOUND, "there is no job %llu; GET …/jobs lists them", (unsigned long long)l->only);
    if (!l->only) {
        json_end_list(&l->json);
        json_end_object(&l->json);
    }
    call_json(c, &l->text);
}

static void on_listed(struct talk *a, const struct frame *f)
{
    struct listing *l = (struct listing *)a;
    struct msg_job m;
    if (f->type == TELL_DONE)
        return finish_listing(l);
    if (f->type != TELL_JOB)
        return;
    if (!msg_job_parse(f->data, f->len, &m))
        return call_refuse(a->call, PALE_PROTOCOL, "the keeper's list cannot be read");
    if (l->only && m.id != l->only)
        return;
    l->found = true;
    if (l->only) { /* the last word counts */
        buf_clear(&l->text);
        json_start(&l->json, &l->text);
    }
    shown_job(&l->json, NULL, &m);
}

static struct listing *new_listing(struct call *c, uint64_t only)
{
    struct listing *l = talk_new(c, sizeof(*l));
    if (!l)
        return NULL;
    l->only = only;
    l->talk.frame = on_listed;
    l->talk.done = end_listing;
    buf_init(&l->text, LIST_BYTES_MAX);
    json_start(&l->json, &l->text);
    if (!only) {
        json_begin_object(&l->json, NULL);
        json_begin_list(&l->json, "items");
    }
    return l;
}

static struct listing *new_one(struct call *c)
{
    uint64_t id;
    return jobs_id(c, &id) ? new_listing(c, id) : NULL;
}

/* A box that is down has no jobs: they go with their keeper. */
static void none_runs(struct talk *a, const struct pale_err *e)
{
    if (e->code == PALE_NOT_FOUND)
        finish_listing((struct listing *)a);
    else
        call_fail(a->call, e);
}

void op_job_list(struct call *c)
{
    struct listing *l = new_listing(c, 0);
    if (!l)
        return;
    l->talk.failed = none_runs;
    talk_send(&l->talk, ASK_JOBS, false);
}

void op_job_inspect(struct call *c)
{
    struct listing *l = new_one(c);
    if (l)
        talk_send(&l->talk, ASK_JOBS, false);
}

/* Time is up: how the job stands is the answer. */
static void on_late(struct loop_timer *t)
{
    struct listing *l = (struct listing *)((char *)t - offsetof(struct listing, timer));
    talk_close(&l->talk);
    buf_clear(&l->talk.request);
    buf_clear(&l->text);
    json_start(&l->json, &l->text);
    l->found = false;
    talk_send(&l->talk, ASK_JOBS, false);
}

void op_job_wait(struct call *c)
{
    struct listing *l = new_one(c);
    if (!l)
        return;
    put_ref(&l->talk, &(struct msg_job_ref){.id = l->only});
    if (call_value(c, "timeout")->given) {
        l->timer.fire = on_late;
        loop_arm(&c->world->loop, &l->timer, clock_ms() + (int64_t)call_number(c, "timeout", 0));
    }
    talk_send(&l->talk, ASK_JOB_WAIT, false);
}

void op_job_signal(struct call *c)
{
    struct listing *l = new_one(c);
    if (!l)
        return;
    put_ref(&l->talk, &(struct msg_job_ref){.id = l->only, .signal = call_number(c, "signal", 0)});
    talk_send(&l->talk, ASK_JOB_KILL, false);
}

/* --- logs: lines or events --- */

struct log {
    struct talk talk;
    struct shown_from from;
    bool begun;
};

static void send_log(struct log *l, const char *event, struct buf *b)
{
    struct call *c = l->talk.call;
    bool first = !l->begun;
    l->begun = true;
    if (first)
        shown_begin(c);
    call_hold(c);
    if (!shown_piece(c, event, b) && !c->answered && !c->gone)
        tether_pause(l->talk.link, true);
    call_drop(c);
}

static void send_number(struct log *l, const char *event, const char *name, uint64_t v)
{
    own_buf b = {0};
    shown_number(&b, event, name, v);
    send_log(l, event, &b);
}

static void send_output(struct log *l, const struct frame *f)
{
    own_buf b = {0};
    struct json j;
    size_t skip = shown_skip(&l->from, f->len);
    if (skip == f->len)
        return;
    buf_init(&b, 8 * FRAME_DATA_MAX);
    json_start(&j, &b);
    json_begin_object(&j, NULL);
    json_text(&j, "event", f->type == TELL_STDERR ? "stderr" : "stdout");
    json_u64(&j, "offset", l->from.wanted);
    shown_bytes(&j, f->data + skip, f->len - skip);
    json_end_object(&j);
    l->from.wanted += f->len - skip;
    send_log(l, f->type == TELL_STDERR ? "stderr" : "stdout", &b);
}

static void end_log(struct log *l, const struct frame *f)
{
    struct call *c = l->talk.call;
    struct msg_job m;
    own_buf b = {0};
    struct json j;
    if (f->type == TELL_DONE) {
        if (!l->begun)
            shown_begin(c);
        return call_end(c, true);
    }
    if (!msg_job_parse(f->data, f->len, &m))
        return call_refuse(c, PALE_PROTOCOL, "the keeper's answer cannot be read");
    buf_init(&b, 8192);
    json_start(&j, &b);
    json_begin_object(&j, NULL);
    json_text(&j, "event", "job");
    shown_job(&j, "job", &m);
    json_end_object(&j);
    send_log(l, "job", &b);
}

static void on_log(struct talk *a, const struct frame *f)
{
    struct log *l = (struct log *)a;
    uint64_t v = 0;
    switch (f->type) {
    case TELL_OFFSET:
        if (msg_u64_parse(f->data, f->len, &v))
            shown_offset(&l->from, v);
        return;
    case TELL_MISSED:
        if (msg_u64_parse(f->data, f->len, &v)) {
            l->from.wanted += v;
            send_number(l, "missed", "bytes", v);
        }
        return;
    case TELL_STDOUT:
    case TELL_STDERR:
        return send_output(l, f);
    case TELL_JOB:
    case TELL_DONE:
        return end_log(l, f);
    default:
        return;
    }
}

void op_job_logs(struct call *c)
{
    uint64_t id;
    if (!jobs_id(c, &id))
        return;
    struct log *l = talk_new(c, sizeof(*l));
    if (!l)
        return;
    l->from.wanted = call_number(c, "offset", 0);
    l->talk.frame = on_log;
    c->room = talk_room;
    put_ref(&l->talk, &(struct msg_job_ref){.id = id, .offset = l->from.wanted, .follow = call_number(c, "follow", 0) != 0});
    talk_send(&l->talk, ASK_JOB_LOGS, false);
}

/* --- input: bytes of the body, in order, as the command takes them --- */

struct input {
    struct talk talk;
    bool ends;
    uint64_t bytes;
};

static void on_piece(struct call *c, const void *p, size_t n, bool last)
{
    struct input *i = c->state;
    const char *at = p;
    bool sent = true;
    for (size_t step; sent && n > 0; n -= step, at += step) {
        step = n < STDIN_WINDOW ? n : STDIN_WINDOW;
        sent = tether_send(i->talk.link, ASK_STDIN, at, step);
        i->bytes += step;
    }
    if (sent && last)
        sent = tether_send(i->talk.link, ASK_INPUT_END, i->ends ? "\1" : "", 1);
    if (!sent)
        return call_refuse(c, PALE_GONE, "the command takes no more input");
    if (!last && tether_unsent(i->talk.link) > 0)
        c->port->want(c, false);
}

/* The keeper has taken everything, or the command has ended. */
static void finish_input(struct input *i, const struct frame *f)
{
    struct msg_job m;
    own_buf b = {0};
    struct json j;
    if (!msg_job_parse(f->data, f->len, &m))
        return call_refuse(i->talk.call, PALE_PROTOCOL, "the keeper's answer cannot be read");
    buf_init(&b, 8192);
    json_start(&j, &b);
    shown_job(&j, NULL, &m);
    call_json(i->talk.call, &b);
}

static void on_input_frame(struct talk *a, const struct frame *f)
{
    if (f->type == TELL_STARTED)
        talk_take(a, on_piece);
    else if (f->type == TELL_JOB)
        finish_input((struct input *)a, f);
}

void op_job_input(struct call *c)
{
    uint64_t id;
    if (!jobs_id(c, &id))
        return;
    struct input *i = talk_new(c, sizeof(*i));
    if (!i)
        return;
    i->ends = call_number(c, "end", 0) != 0;
    i->talk.frame = on_input_frame;
    i->talk.room = talk_taken;
    put_ref(&i->talk, &(struct msg_job_ref){.id = id});
    talk_send(&i->talk, ASK_JOB_INPUT, false);
}
