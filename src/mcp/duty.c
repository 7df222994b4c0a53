/* SPDX-License-Identifier: Apache-2.0 */
/* Owns duties: calls of operations that are brought by MCP rather than by HTTP. */
#include "mcp/duty.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "ops/op.h"
#include "ops/values.h"

#define LINE_MAX_BYTES (1u << 20)
#define BODY_STEP 32768u

/* --- the port --- */

static struct duty *of(struct call *c)
{
    return c->bringer;
}

/* The call's answer has been given: it is let go, and whoever waits hears of it. */
static void finish(struct call *c, const struct pale_err *e)
{
    struct duty *k = of(c);
    if (!k)
        return;
    k->call = NULL;
    c->bringer = NULL;
    call_drop(c);
    json_t *answer = e || k->streamed ? NULL : json_loadb(k->text.len ? (const char *)k->text.data : "", k->text.len, JSON_ALLOW_NUL, NULL);
    k->done(k, e, answer);
    json_decref(answer);
}

static void take(struct duty *k, const void *p, size_t n)
{
    size_t room = k->text.max - k->text.len;
    buf_add(&k->text, p, n < room ? n : room);
}

static void take_lines(struct duty *k, const void *p, size_t n)
{
    buf_add(&k->line, p, n);
    for (uint8_t *end; k->line.len > 0 && !k->enough && (end = memchr(k->line.data, '\n', k->line.len));) {
        json_t *line = json_loadb((const char *)k->line.data, (size_t)(end - k->line.data), JSON_ALLOW_NUL, NULL);
        buf_consume(&k->line, (size_t)(end - k->line.data) + 1);
        if (line)
            k->heard(k, line);
        json_decref(line);
    }
}

static void port_whole(struct call *c, unsigned status, const char *type, const void *p, size_t n)
{
    (void)status, (void)type;
    if (of(c) && n > 0)
        take(of(c), p, n);
    finish(c, NULL);
}

static void port_begin(struct call *c, unsigned status, const char *type, const char *headers)
{
    (void)c, (void)status, (void)type, (void)headers;
}

static bool port_write(struct call *c, const void *p, size_t n)
{
    struct duty *k = of(c);
    if (!k)
        return true;
    if (k->streamed)
        take_lines(k, p, n);
    else
        take(k, p, n);
    if (!k->streamed && k->stops && k->text.len == k->text.max)
        k->enough = true;
    if (!k->enough)
        return true;
    k->call = NULL;
    c->bringer = NULL;
    call_leave(c);
    k->done(k, NULL, NULL);
    return false;
}

static void port_end(struct call *c, bool whole)
{
    struct pale_err e;
    if (!whole)
        err_set(&e, PALE_GONE, "the answer broke off");
    finish(c, whole ? NULL : &e);
}

static void port_fail(struct call *c, const struct pale_err *e)
{
    struct pale_err copy = *e;
    call_trace(c, e->code == PALE_DENIED, e);
    finish(c, &copy);
}

static void port_want(struct call *c, bool on)
{
    struct duty *k = of(c);
    bool was = k && k->wants;
    if (!k)
        return;
    k->wants = on;
    if (was || !on)
        return;
    call_hold(c);
    while (of(c) && k->wants && c->piece && !c->bytes_done) {
        size_t left = k->body_len - k->body_at, n = left < BODY_STEP ? left : BODY_STEP;
        const char *at = k->body + k->body_at;
        k->body_at += n;
        c->bytes_done = k->body_at == k->body_len;
        c->piece(c, at, n, c->bytes_done);
    }
    call_drop(c);
}

static bool port_message(struct call *c, bool text, const void *p, size_t n)
{
    (void)c, (void)text, (void)p, (void)n;
    return true;
}

static void port_hang_up(struct call *c, unsigned status, const char *reason)
{
    (void)status, (void)reason;
    port_end(c, false);
}

static const struct call_port port = {
    .whole = port_whole,
    .begin = port_begin,
    .write = port_write,
    .end = port_end,
    .fail = port_fail,
    .want = port_want,
    .message = port_message,
    .hang_up = port_hang_up,
};

/* --- running --- */

void duty_init(struct duty *k, struct mcp_request *r, size_t most)
{
    k->r = r;
    memcpy(k->box, r->box, sizeof(k->box));
    buf_init(&k->text, most);
    buf_init(&k->line, LINE_MAX_BYTES);
}

static const struct op *find_op(const char *name)
{
    for (const struct op *o = op_table; o->name; o++)
        if (strcmp(o->name, name) == 0)
            return o;
    return NULL;
}

bool duty_takes(const char *op, const char *field)
{
    const struct op *o = find_op(op);
    for (const struct op_field *f = o ? o->fields : NULL; f && f->name; f++)
        if (strcmp(f->name, field) == 0)
            return true;
    return false;
}

/* The segments of a path, of which only those in braces are ever looked at. */
static void set_target(struct duty *k, struct call *c)
{
    for (const char *at = c->op->path; (at = strchr(at, '/')); at++)
        c->target.segment[c->target.segments++] = strncmp(at, "/{box}", 6) == 0         ? k->box
                                                  : strncmp(at, "/{job}", 6) == 0       ? k->job
                                                  : strncmp(at, "/{question}", 11) == 0 ? k->question
                                                                                        : "";
}

static int prepare(struct duty *k, struct call *c, struct pale_err *e)
{
    const struct op *o = c->op;
    if (!call_may(&c->who, o))
        return err_set(e, PALE_DENIED, "this token has no right to %s; the operator can give one that has", o->name);
    set_target(k, c);
    return values_object(o->name, o->fields, c->body, c->values, e);
}

void duty_run(struct duty *k, const char *op, uint64_t job, json_t *values)
{
    struct pale_err e;
    struct call *c = call_new(k->r->world);
    if (!c || !values) {
        if (c)
            call_drop(c);
        json_decref(values);
        err_nomem(&e);
        return k->done(k, &e, NULL);
    }
    snprintf(k->job, sizeof(k->job), "%llu", (unsigned long long)job);
    buf_clear(&k->text);
    buf_clear(&k->line);
    k->call = c;
    k->body_at = 0;
    k->wants = k->enough = false;
    c->op = find_op(op);
    assert(c->op);
    c->who = k->r->who;
    c->body = values;
    c->port = &port;
    c->comes_back = true;
    c->bringer = k;
    c->wants_stream = k->streamed;
    c->bytes_done = k->body_len == 0;
    /* A command that is to outlive its request has a key, as one that somebody comes back for. */
    if (k->key[0] && c->op->right == RIGHT_EXEC)
        snprintf(c->key, sizeof(c->key), "%s", k->key);
    else if (k->r->goes_on && c->op->right == RIGHT_EXEC && !mcp_secret_name("mcp-", c->key, sizeof(c->key)))
        c->key[0] = 0;
    call_hold(c);
    if (prepare(k, c, &e) < 0)
        call_fail(c, &e);
    else
        c->op->run(c);
    call_drop(c);
}

uint64_t duty_number(const json_t *answer, const char *key)
{
    json_int_t n = json_integer_value(json_object_get(answer, key));
    return n > 0 ? (uint64_t)n : 0;
}

void duty_leave(struct duty *k)
{
    struct call *c = k->call;
    k->call = NULL;
    if (!c)
        return;
    c->bringer = NULL;
    call_leave(c);
}

void duty_done(struct duty *k, bool goes_on)
{
    if (k->call && !goes_on)
        k->call->key[0] = 0;
    duty_leave(k);
    buf_done(&k->text);
    buf_done(&k->line);
}
