/* SPDX-License-Identifier: Apache-2.0 */
/* Owns job.attach: the input and output of a command over a WebSocket, a terminal's above all.
 *
 * How it works: binary messages are bytes, of the command's output to the client and of its input from it. Text messages are JSON: from
 * the client {"resize":[rows,cols]}, {"signal":n}, {"end":true}; to the client {"event":"started"…}, "missed" and "exit". Who comes back
 * says with offset how many bytes of output it has seen. A client that does not read is not read for: the command's log keeps the
 * newest output, and the gap is told. */
#include <string.h>

#include "net/wsframe.h"
#include "ops/talk.h"
#include "ops/ops.h"
#include "ops/shown.h"
#include "wire/result_json.h"

#define FEED_HIGH (4u * STDIN_WINDOW) /* unsent bytes at which the keeper is given time */

struct attach {
    struct talk talk;
    struct shown_from from;
    bool begun;
    struct buf input; /* of a message, that the keeper has not taken yet; no other comes meanwhile */
};

static void begin(struct attach *t)
{
    bool first = !t->begun;
    t->begun = true;
    if (first)
        call_begin(t->talk.call, NULL, "");
}

/* Says it, and stops listening to the keeper if the client does not take it. */
static void say(struct attach *t, bool text, const void *p, size_t n)
{
    struct call *c = t->talk.call;
    begin(t);
    call_hold(c);
    if (!c->gone && !c->answered && !c->port->message(c, text, p, n) && !c->gone && !c->answered)
        tether_pause(t->talk.link, true);
    call_drop(c);
}

static void say_number(struct attach *t, const char *event, const char *name, uint64_t v)
{
    own_buf b = {0};
    shown_number(&b, event, name, v);
    say(t, true, b.data, b.len);
}

static void say_exit(struct attach *t, const struct frame *f)
{
    struct call *c = t->talk.call;
    struct msg_result r;
    own_buf b = {0};
    struct json j;
    if (!msg_result_parse(f->data, f->len, &r))
        return call_refuse(c, PALE_PROTOCOL, "the keeper's result cannot be read");
    buf_init(&b, 8192);
    json_start(&j, &b);
    json_begin_object(&j, NULL);
    json_text(&j, "event", "exit");
    result_json(&j, &r);
    json_end_object(&j);
    call_hold(c);
    say(t, true, b.data, b.len);
    call_hang_up(c, 1000, "the command has ended");
    call_drop(c);
}

static void on_frame(struct talk *a, const struct frame *f)
{
    struct attach *t = (struct attach *)a;
    uint64_t v = 0;
    switch (f->type) {
    case TELL_STARTED:
        if (msg_u64_parse(f->data, f->len, &v))
            say_number(t, "started", "job", v);
        return;
    case TELL_OFFSET:
        if (msg_u64_parse(f->data, f->len, &v)) {
            shown_offset(&t->from, v);
            say_number(t, "offset", "bytes", t->from.wanted);
        }
        return;
    case TELL_MISSED:
        if (msg_u64_parse(f->data, f->len, &v))
            say_number(t, "missed", "bytes", v);
        return;
    case TELL_STDOUT:
    case TELL_STDERR: {
        size_t skip = shown_skip(&t->from, f->len);
        if (skip < f->len)
            say(t, false, f->data + skip, f->len - skip);
        return;
    }
    case TELL_RESULT:
        return say_exit(t, f);
    default:
        return;
    }
}

/* Gives the keeper what it takes of a message, and keeps the rest. False if it takes nothing any more. */
static bool feed(struct attach *t, const uint8_t *p, size_t n)
{
    while (n > 0 && tether_unsent(t->talk.link) < FEED_HIGH) {
        size_t step = n < STDIN_WINDOW ? n : STDIN_WINDOW;
        if (!tether_send(t->talk.link, ASK_STDIN, p, step))
            return false;
        p += step;
        n -= step;
    }
    if (n > 0)
        buf_add(&t->input, p, n);
    return !t->input.failed;
}

/* The keeper has taken what we sent: more may come. */
static void on_taken(struct talk *a)
{
    struct attach *t = (struct attach *)a;
    struct call *c = a->call;
    own_buf rest = t->input;
    buf_init(&t->input, WS_PAYLOAD_MAX);
    if (!feed(t, rest.data, rest.len))
        return call_refuse(c, PALE_GONE, "the command takes no more input");
    if (t->input.len == 0)
        c->port->want(c, true);
}

static void on_done(struct talk *a)
{
    buf_done(&((struct attach *)a)->input);
}

static bool send_number(struct tether *l, uint8_t type, uint64_t v)
{
    uint8_t b[8];
    for (int i = 0; i < 8; i++)
        b[i] = (uint8_t)(v >> (8 * i));
    return tether_send(l, type, b, sizeof(b));
}

static bool obey(struct attach *t, json_t *o)
{
    const json_t *resize = json_object_get(o, "resize"), *signal = json_object_get(o, "signal");
    if (!json_is_object(o) || json_object_size(o) != 1)
        return false;
    if (json_is_array(resize) && json_array_size(resize) == 2) {
        json_int_t rows = json_integer_value(json_array_get(resize, 0)), cols = json_integer_value(json_array_get(resize, 1));
        return rows > 0 && rows <= UINT16_MAX && cols > 0 && cols <= UINT16_MAX &&
               send_number(t->talk.link, ASK_RESIZE, (uint64_t)rows << 16 | (uint64_t)cols);
    }
    if (json_is_integer(signal) && json_integer_value(signal) > 0 && json_integer_value(signal) <= 64)
        return send_number(t->talk.link, ASK_SIGNAL, (uint64_t)json_integer_value(signal));
    return json_is_true(json_object_get(o, "end")) && tether_send(t->talk.link, ASK_STDIN_END, NULL, 0);
}

static void on_heard(struct call *c, bool text, const uint8_t *p, size_t n)
{
    struct attach *t = c->state;
    bool good = true;
    if (text) {
        json_t *o = json_loadb((const char *)p, n, JSON_REJECT_DUPLICATES, NULL);
        good = o && obey(t, o);
        json_decref(o);
    } else
        good = feed(t, p, n);
    if (!good)
        return call_hang_up(c, 1002, "a message that means nothing here");
    if (tether_unsent(t->talk.link) > 0)
        c->port->want(c, false);
}

void op_job_attach(struct call *c)
{
    uint64_t id = 0;
    struct record_writer w;
    if (!jobs_id(c, &id))
        return;
    struct attach *t = talk_new(c, sizeof(*t));
    if (!t)
        return;
    t->from.wanted = call_number(c, "offset", 0);
    t->talk.frame = on_frame;
    t->talk.room = on_taken;
    t->talk.done = on_done;
    buf_init(&t->input, WS_PAYLOAD_MAX);
    c->room = talk_room;
    c->heard = on_heard;
    if (!buf_reserve(&t->talk.request, 256))
        return call_refuse(c, PALE_NO_MEMORY, "out of memory");
    record_start(&w, t->talk.request.data, 256);
    msg_attach_write(&(struct msg_attach){.id = id, .offset = t->from.wanted}, &w);
    t->talk.request.len = w.len;
    talk_send(&t->talk, ASK_ATTACH, false);
}
