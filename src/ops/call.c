/* SPDX-License-Identifier: Apache-2.0 */
/* Owns calls. */
#include "ops/call.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/weak.h"
#include "ops/world.h"

bool call_may(const struct caller *who, const struct op *o)
{
    if (o->operators_only && who->scope != CALLER_OPERATOR && !weak_word("widen"))
        return false;
    return o->right == RIGHT_NONE || (who->rights >> o->right & 1) || weak_word(o->operators_only ? "widen" : "tokens");
}

bool call_holds(const struct caller *who, enum op_right right)
{
    return (who->rights >> right & 1) || weak_word("tokens");
}

const struct value *call_value(const struct call *c, const char *name)
{
    static const struct value none;
    for (size_t i = 0; c->op->fields && c->op->fields[i].name; i++)
        if (strcmp(c->op->fields[i].name, name) == 0)
            return &c->values[i];
    return &none;
}

const char *call_text(const struct call *c, const char *name, const char *otherwise)
{
    const struct value *v = call_value(c, name);
    return v->given ? v->text : otherwise;
}

uint64_t call_number(const struct call *c, const char *name, uint64_t otherwise)
{
    const struct value *v = call_value(c, name);
    return v->given ? v->number : otherwise;
}

const char *call_param(const struct call *c, const char *name)
{
    const char *at = c->op->path + 1;
    size_t len = strlen(name);
    for (size_t i = 0; i < c->target.segments && at; i++) {
        if (at[0] == '{' && strncmp(at + 1, name, len) == 0 && at[len + 1] == '}')
            return c->target.segment[i];
        at = strchr(at, '/');
        at = at ? at + 1 : NULL;
    }
    return "";
}

const char *call_caller(const struct call *c)
{
    return c->who.token[0] ? c->who.token : "operator";
}

struct call *call_new(struct world *w)
{
    struct call *c = calloc(1, sizeof(*c));
    if (c) {
        c->world = w;
        c->held = 1;
    }
    return c;
}

void call_hold(struct call *c)
{
    c->held++;
}

void call_drop(struct call *c)
{
    assert(c->held > 0);
    if (--c->held > 0)
        return;
    json_decref(c->body);
    for (size_t i = 0; i < HEAD_COUNT; i++)
        free(c->head[i]);
    free(c);
}

static void let_go(struct call *c)
{
    void (*left)(struct call *) = c->left;
    c->left = NULL;
    c->room = NULL;
    c->piece = NULL;
    c->heard = NULL;
    if (left)
        left(c);
}

void call_leave(struct call *c)
{
    c->gone = true;
    let_go(c);
    call_drop(c);
}

void call_answer(struct call *c, unsigned status, const char *type, const void *p, size_t n)
{
    if (c->answered || c->gone)
        return;
    call_hold(c);
    c->answered = true;
    c->port->whole(c, status, type, p, n);
    let_go(c); /* not before: the answer may be its */
    call_drop(c);
}

void call_json(struct call *c, struct buf *text)
{
    buf_add(text, "\n", 1);
    if (text->failed)
        return call_refuse(c, PALE_LIMIT, "the answer is too long");
    call_answer(c, c->op->status, "application/json", text->data, text->len);
}

void call_text_answer(struct call *c, const char *type, const struct buf *text)
{
    call_answer(c, c->op->status, type, text->data, text->len);
}

void call_nothing(struct call *c)
{
    call_answer(c, c->op->status, NULL, NULL, 0);
}

void call_fail(struct call *c, const struct pale_err *e)
{
    if (c->answered || c->gone)
        return;
    call_hold(c);
    c->answered = true;
    c->port->fail(c, e);
    let_go(c);
    call_drop(c);
}

void call_refuse(struct call *c, enum pale_code code, const char *fmt, ...)
{
    struct pale_err e = {.code = code};
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(e.text, sizeof(e.text), fmt, ap);
    va_end(ap);
    call_fail(c, &e);
}

void call_trace(const struct call *c, bool denied, const struct pale_err *e)
{
    if (c->world->refused && c->trace != TRACE_NEVER && (denied || c->trace == TRACE_ALWAYS))
        c->world->refused(c->who.token, c->op ? c->op->name : "a path that is none", e->text);
}

void call_begin(struct call *c, const char *type, const char *headers)
{
    if (!c->answered && !c->gone)
        c->port->begin(c, c->status ? c->status : c->op->status, type, headers);
}

bool call_write(struct call *c, const void *p, size_t n)
{
    return !c->answered && !c->gone && c->port->write(c, p, n);
}

void call_end(struct call *c, bool whole)
{
    if (c->answered || c->gone)
        return;
    call_hold(c);
    c->answered = true;
    c->port->end(c, whole);
    let_go(c);
    call_drop(c);
}

void call_hang_up(struct call *c, unsigned status, const char *reason)
{
    if (c->answered || c->gone)
        return;
    call_hold(c);
    c->answered = true;
    c->port->hang_up(c, status, reason);
    let_go(c);
    call_drop(c);
}
