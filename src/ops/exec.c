/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the operations that run a command: exec, buffered or streamed, and job.start.
 *
 * How it works: every command lasts (EXEC_LAST), so that it and its output outlive this daemon. One whose client leaves is ended, unless
 * the request had a key: then somebody may come back for it, and the same key with the same request finds the same command. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/talk.h"
#include "base/base64.h"
#include "ops/ops.h"
#include "ops/shown.h"
#include "wire/result_json.h"

#define BUFFERED_MAX EXEC_BRIEF_BYTES /* of each stream in a buffered answer; a stream has no such bound */
#define FEED_HIGH (4u * STDIN_WINDOW)

struct exec {
    struct talk talk;
    bool streamed, detach, begun, killed;
    bool gives_last; /* the end of its input is on the way */
    uint64_t job;
    struct buf out, err;
    uint64_t cut; /* bytes that the buffers had no room for */
    uint64_t missed;
    const char *in; /* of the request's body, which lives as long as the call */
    size_t in_len, in_at;
    struct buf in_mem; /* … or what it stood for */
    bool takes_input;
};

/* --- the request --- */

static int take_command(const json_t *v, struct msg_exec *m)
{
    if (json_is_string(v)) {
        m->argv[0] = "/bin/sh";
        m->argv[1] = "-c";
        m->argv[2] = json_string_value(v);
        m->argc = 3;
        return 0;
    }
    for (m->argc = 0; m->argc < json_array_size(v); m->argc++)
        m->argv[m->argc] = json_string_value(json_array_get(v, m->argc));
    return 0;
}

static int take_env(const json_t *map, struct msg_exec *m, struct buf *mem, struct pale_err *e)
{
    const char *name;
    json_t *v;
    buf_init(mem, FRAME_PAYLOAD_MAX);
    json_object_foreach((json_t *)map, name, v)
    {
        if (!json_is_string(v) || name[0] == 0 || strchr(name, '=') || m->envc == EXEC_STRINGS_MAX)
            return err_set(e, PALE_BAD_INPUT, "env: an object of variables, each a text");
        buf_addf(mem, "%s=%s", name, json_string_value(v));
        buf_add(mem, "", 1);
        m->envc++;
    }
    if (mem->failed)
        return err_set(e, PALE_LIMIT, "env: more than a keeper takes");
    const char *at = (const char *)mem->data;
    for (size_t i = 0; i < m->envc; i++, at += strlen(at) + 1)
        m->env[i] = at;
    return 0;
}

static int take_input(struct call *c, struct exec *x, struct pale_err *e)
{
    const struct value *text = call_value(c, "stdin"), *coded = call_value(c, "stdin_base64");
    if (text->given && coded->given)
        return err_set(e, PALE_BAD_INPUT, "stdin or stdin_base64, not both");
    if (text->given) {
        x->in = text->text;
        x->in_len = strlen(text->text);
    }
    if (coded->given) {
        buf_init(&x->in_mem, 1 << 20);
        if (!base64_read(coded->text, &x->in_mem))
            return err_set(e, PALE_BAD_INPUT, "stdin_base64: this is no base64");
        x->in = (const char *)x->in_mem.data;
        x->in_len = x->in_mem.len;
    }
    x->takes_input = x->in != NULL || call_number(c, "input", 0) != 0;
    if (x->in && c->key[0]) /* it is part of what was asked, and not of what is compared else */
        sha256_hex(x->in, x->in_len, x->talk.input);
    return 0;
}

static int write_request(struct call *c, struct exec *x, struct pale_err *e)
{
    static struct msg_exec m; /* large; nothing else runs meanwhile */
    own_buf env = {0};
    memset(&m, 0, offsetof(struct msg_exec, argv));
    int r = take_input(c, x, e);
    m.flags = EXEC_LAST | (x->takes_input ? EXEC_STDIN : 0) | (call_number(c, "merge", 0) ? EXEC_SHARE : 0);
    /* Who has no key and gets the answer cannot ask for it again. */
    if (!x->detach && !c->key[0] && !c->comes_back)
        m.flags |= x->streamed ? EXEC_ONCE : EXEC_BRIEF;
    if (call_number(c, "tty", 0)) {
        m.flags |= EXEC_TTY | EXEC_STDIN;
        m.rows = (uint16_t)call_number(c, "rows", 24);
        m.cols = (uint16_t)call_number(c, "cols", 80);
    }
    m.user = call_text(c, "user", "");
    m.cwd = call_text(c, "cwd", "");
    m.label = "";
    m.key = c->key;
    m.timeout_ms = call_number(c, "timeout", 0);
    take_command(call_value(c, "command")->json, &m);
    if (r == 0 && call_value(c, "env")->given)
        r = take_env(call_value(c, "env")->json, &m, &env, e);
    if (r < 0)
        return r;
    struct record_writer w;
    if (!buf_reserve(&x->talk.request, FRAME_PAYLOAD_MAX))
        return err_nomem(e);
    record_start(&w, x->talk.request.data, FRAME_PAYLOAD_MAX);
    msg_exec_write(&m, &w);
    x->talk.request.len = w.len;
    return w.full ? err_set(e, PALE_LIMIT, "the command and its environment are longer than %u bytes", FRAME_PAYLOAD_MAX) : 0;
}

/* --- its input --- */

static void feed(struct talk *a)
{
    struct exec *x = (struct exec *)a;
    if (!x->in || x->job == 0)
        return;
    while (x->in_at < x->in_len && tether_unsent(a->link) < FEED_HIGH) {
        size_t n = x->in_len - x->in_at < STDIN_WINDOW ? x->in_len - x->in_at : STDIN_WINDOW;
        if (!tether_send(a->link, ASK_STDIN, x->in + x->in_at, n))
            return;
        x->in_at += n;
    }
    if (x->in_at < x->in_len)
        return;
    x->in = NULL;
    /* A detached one gets its input before we leave it, because nobody else has it: TELL_JOB says that it was taken. */
    x->gives_last = x->detach && tether_send(a->link, ASK_INPUT_END, "\1", 1);
    if (!x->gives_last)
        (void)tether_send(a->link, ASK_STDIN_END, NULL, 0);
}

/* --- its output --- */

static void begin_stream(struct exec *x)
{
    struct call *c = x->talk.call;
    if (x->begun)
        return;
    x->begun = true;
    shown_begin(c);
}

static void stream_json(struct exec *x, const char *event, struct buf *b)
{
    struct call *c = x->talk.call;
    begin_stream(x);
    /* A client that does not take it is not read for; the command's log keeps it meanwhile. */
    call_hold(c);
    if (!shown_piece(c, event, b) && !c->answered && !c->gone)
        tether_pause(x->talk.link, true);
    call_drop(c);
}

static void stream_started(struct exec *x)
{
    own_buf b = {0};
    shown_number(&b, "started", "job", x->job);
    stream_json(x, "started", &b);
}

static void take_output(struct exec *x, const struct frame *f)
{
    bool is_err = f->type == TELL_STDERR;
    if (!x->streamed) {
        struct buf *b = is_err ? &x->err : &x->out;
        size_t room = b->max - b->len, n = f->len < room ? f->len : room;
        buf_add(b, f->data, n);
        x->cut += f->len - n;
        return;
    }
    own_buf b = {0};
    struct json j;
    buf_init(&b, 8 * FRAME_DATA_MAX);
    json_start(&j, &b);
    json_begin_object(&j, NULL);
    json_text(&j, "event", is_err ? "stderr" : "stdout");
    shown_bytes(&j, f->data, f->len);
    json_end_object(&j);
    stream_json(x, is_err ? "stderr" : "stdout", &b);
}

static void take_missed(struct exec *x, const struct frame *f)
{
    uint64_t n = 0;
    own_buf b = {0};
    if (!msg_u64_parse(f->data, f->len, &n))
        return;
    x->missed += n;
    if (!x->streamed)
        return;
    shown_number(&b, "missed", "bytes", n);
    stream_json(x, "missed", &b);
}

static void named_bytes(struct json *j, const char *name, const struct buf *b)
{
    json_begin_object(j, name);
    shown_bytes(j, b->data ? b->data : (const uint8_t *)"", b->len);
    json_end_object(j);
}

static void tell_detached(struct exec *x)
{
    struct call *c = x->talk.call;
    own_buf b = {0};
    struct json j;
    buf_init(&b, 1024);
    json_start(&j, &b);
    json_begin_object(&j, NULL);
    json_u64(&j, "job", x->job);
    json_end_object(&j);
    x->killed = true;
    call_json(c, &b);
}

static void take_result(struct exec *x, const struct frame *f)
{
    struct call *c = x->talk.call;
    struct msg_result r;
    own_buf b = {0};
    struct json j;
    if (!msg_result_parse(f->data, f->len, &r))
        return call_refuse(c, PALE_PROTOCOL, "the keeper's result cannot be read");
    x->killed = true; /* there is nothing left to end */
    if (x->detach)
        return tell_detached(x);
    buf_init(&b, 12u << 20);
    json_start(&j, &b);
    json_begin_object(&j, NULL);
    if (x->streamed)
        json_text(&j, "event", "exit");
    json_u64(&j, "job", x->job);
    result_json(&j, &r);
    if (!x->streamed) {
        json_u64(&j, "cut_bytes", x->cut + x->missed);
        named_bytes(&j, "stdout", &x->out);
        named_bytes(&j, "stderr", &x->err);
    }
    json_end_object(&j);
    if (!x->streamed)
        return call_json(c, &b);
    stream_json(x, "exit", &b);
    call_end(c, true);
}

static void take_started(struct exec *x, const struct frame *f)
{
    if (!msg_u64_parse(f->data, f->len, &x->job) || x->job == 0)
        return call_refuse(x->talk.call, PALE_PROTOCOL, "the keeper's answer cannot be read");
    x->talk.call->world->fleet.counts.execs++;
    if (x->detach && !x->in)
        return tell_detached(x);
    struct call *c = x->talk.call;
    if (x->streamed)
        stream_started(x);
    if (c->state)
        feed(&x->talk);
}

static void on_frame(struct talk *a, const struct frame *f)
{
    struct exec *x = (struct exec *)a;
    struct msg_job m;
    switch (f->type) {
    case TELL_JOB: /* it was there already: what it was given need not be given again */
        if (x->gives_last)
            return tell_detached(x);
        if (msg_job_parse(f->data, f->len, &m) && m.in_bytes <= x->in_len)
            x->in_at = (size_t)m.in_bytes;
        return;
    case TELL_STARTED:
        return take_started(x, f);
    case TELL_STDOUT:
    case TELL_STDERR:
        return take_output(x, f);
    case TELL_MISSED:
        return take_missed(x, f);
    case TELL_RESULT:
        return take_result(x, f);
    default:
        return;
    }
}

/* --- its end --- */

/* A command whose client left without a key to come back by is ended, over a connection that waits for nothing. */
static void on_kill_frame(struct tether *l, const struct frame *f)
{
    (void)f;
    tether_close(l);
}

static const struct tether_use kill_use = {on_kill_frame, tether_close, NULL};

static void end_command(struct world *w, const char *box, const char *caller, uint64_t job)
{
    struct tether *l;
    struct record_writer r;
    uint8_t mem[128];
    struct msg_job_ref ref = {.id = job};
    record_start(&r, mem, sizeof(mem));
    msg_job_ref_write(&ref, &r);
    if (fleet_link(&w->fleet, box, &kill_use, NULL, &l, NULL) < 0)
        return;
    if (!talk_preface(l, caller, "") || !tether_send(l, ASK_JOB_KILL, mem, r.len))
        tether_close(l);
}

/* It may not even have told yet that it has begun: then it is ended as soon as it does. */
struct orphan {
    struct world *world;
    char box[BOX_ID_LEN + 1], caller[CALLER_MAX + 1];
};

static void orphan_gone(struct tether *l)
{
    free(l->owner);
    tether_close(l);
}

static void on_orphan_frame(struct tether *l, const struct frame *f)
{
    struct orphan *o = l->owner;
    uint64_t job = 0;
    if (f->type == TELL_STARTED && msg_u64_parse(f->data, f->len, &job) && job > 0)
        end_command(o->world, o->box, o->caller, job);
    orphan_gone(l);
}

static const struct tether_use orphan_use = {on_orphan_frame, orphan_gone, NULL};

static void end_when_begun(struct talk *a)
{
    struct orphan *o = malloc(sizeof(*o));
    if (!o)
        return;
    o->world = a->call->world;
    memcpy(o->box, a->box, sizeof(o->box));
    snprintf(o->caller, sizeof(o->caller), "%s", call_caller(a->call));
    a->link->use = &orphan_use;
    a->link->owner = o;
    tether_pause(a->link, false); /* nobody is left who would let it go on */
    a->link = NULL;
}

static void on_done(struct talk *a)
{
    struct exec *x = (struct exec *)a;
    bool abandoned = a->call->gone && !x->killed && !a->call->key[0] && !a->call->world->ending;
    if (abandoned && x->job)
        end_command(a->call->world, a->box, call_caller(a->call), x->job);
    else if (abandoned && a->link)
        end_when_begun(a);
    buf_done(&x->out);
    buf_done(&x->err);
    buf_done(&x->in_mem);
}

static void run(struct call *c, bool detach)
{
    struct pale_err e;
    struct exec *x = talk_new(c, sizeof(*x));
    if (!x)
        return;
    x->detach = detach;
    x->streamed = !detach && c->wants_stream;
    x->talk.frame = on_frame;
    x->talk.room = feed;
    x->talk.done = on_done;
    c->room = talk_room;
    buf_init(&x->out, BUFFERED_MAX);
    buf_init(&x->err, BUFFERED_MAX);
    if (write_request(c, x, &e) < 0)
        return call_fail(c, &e);
    talk_send(&x->talk, ASK_EXEC, true);
}

void op_exec(struct call *c)
{
    run(c, false);
}

void op_job_start(struct call *c)
{
    run(c, true);
}
