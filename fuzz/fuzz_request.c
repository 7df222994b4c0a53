/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: the values of a request by the table of operations. After a byte of 0 come the number of an operation, its query, ended
 * by a NUL, and its body. What is accepted is within the bounds of its row, what the row does not know is refused, and every refusal says
 * why. After a byte of 1 comes a whole target: what is found for it is what it says. */
#include <assert.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/limits.h"
#include "base/number.h"
#include "chosen_op.h"
#include "ops/ops.h"
#include "ops/values.h"
#include "rest/route.h"

#define LIST_MOST 4096u

UNSEEN static void check_texts(json_t *v, uint64_t most)
{
    size_t i;
    json_t *item;
    assert(json_is_array(v) && json_array_size(v) <= (most ? most : LIST_MOST));
    json_array_foreach(v, i, item) assert(json_is_string(item) && strlen(json_string_value(item)) == json_string_length(item));
}

UNSEEN static void check_map(json_t *v, uint64_t most)
{
    const char *key;
    json_t *item;
    assert(json_is_object(v) && json_object_size(v) <= (most ? most : LIST_MOST));
    json_object_foreach(v, key, item) if (!json_is_string(item)) check_texts(item, 0);
}

UNSEEN static void check_text(const struct op_field *f, const struct value *v)
{
    assert(v->text && strlen(v->text) <= (f->most ? f->most : PATH_BYTES_MAX));
    if (v->json)
        assert(json_is_string(v->json) && v->text == json_string_value(v->json) && strlen(v->text) == json_string_length(v->json));
}

UNSEEN static void check_value(const struct op_field *f, const struct value *v)
{
    uint64_t ms = 0;
    assert((f->where == IN_BODY) == (v->json != NULL));
    switch (f->kind) {
    case KIND_TEXT:
        check_text(f, v);
        break;
    case KIND_TIME:
        if (v->text) {
            check_text(f, v);
            assert(number_duration(v->text, &ms) && ms == v->number);
        }
        /* Added to a time of day it is one. */
        assert(v->number <= UINT64_MAX / 1000 && (v->text || json_is_number(v->json)));
        break;
    case KIND_NUMBER:
        assert(!f->most || v->number <= f->most);
        assert(!v->json || (uint64_t)json_integer_value(v->json) == v->number);
        break;
    case KIND_BOOL:
        assert(v->number <= 1 && (!v->json || json_is_true(v->json) == (v->number == 1)));
        break;
    case KIND_TEXTS:
        check_texts(v->json, f->most);
        break;
    case KIND_COMMAND:
        if (!json_is_string(v->json))
            check_texts(v->json, EXEC_STRINGS_MAX);
        assert(json_is_string(v->json) ? json_string_length(v->json) > 0 : json_array_size(v->json) > 0);
        break;
    case KIND_MAP:
        check_map(v->json, f->most);
        break;
    case KIND_OBJECT:
        assert(json_is_object(v->json));
        break;
    case KIND_LIST_OF:
    case KIND_SECONDS:
        assert(false);
    }
}

/* Every name that was given is a field of the row, and has become its value. */
UNSEEN static void check_known(const struct call *c, const char *name, enum op_where where, bool counts)
{
    for (size_t i = 0; c->op->fields && c->op->fields[i].name; i++)
        if (c->op->fields[i].where == where && strcmp(c->op->fields[i].name, name) == 0) {
            assert(c->values[i].given == counts);
            return;
        }
    assert(!"a name that the operation does not know");
}

UNSEEN static void check_all(const struct call *c)
{
    const char *key;
    json_t *v;
    size_t i = 0;
    for (; c->op->fields && c->op->fields[i].name; i++) {
        const struct op_field *f = &c->op->fields[i];
        assert(i < OP_FIELDS_MAX && call_value(c, f->name) == &c->values[i]);
        assert(!f->required || c->values[i].given);
        if (c->values[i].given)
            check_value(f, &c->values[i]);
    }
    for (; i < OP_FIELDS_MAX; i++)
        assert(!c->values[i].given);
    for (i = 0; i < c->target.pairs; i++)
        check_known(c, c->target.pair[i].key, IN_QUERY, true);
    json_object_foreach(c->body, key, v) check_known(c, key, IN_BODY, !json_is_null(v));
}

UNSEEN static void check_refusal(const struct pale_err *e)
{
    assert(e->code == PALE_BAD_INPUT && e->text[0] && strlen(e->text) < sizeof(e->text));
}

static void try_values(const struct op *o, struct input *in)
{
    char text[HTTP_TARGET_MAX] = "/x?";
    struct pale_err e = {0};
    struct call *c = call_new(NULL);
    assert(c);
    c->op = o;
    size_t n = 2 + (input_text(in, text + 3, sizeof(text) - 3) ? 1 + strlen(text + 3) : 0);
    char *body = malloc(in->left ? in->left : 1); /* of its own, so that one byte too many is seen */
    assert(body);
    memcpy(body, in->at, in->left);
    if (!target_parse(&(struct http_text){text, n}, &c->target))
        c->target.pairs = 0;
    if (values_query(c, &e) < 0 || values_body(c, body, in->left, &e) < 0)
        check_refusal(&e);
    else {
        assert(!memchr(body, 0, in->left));
        check_all(c);
    }
    free(body);
    call_drop(c);
}

/* A path is one operation's for each method, or nobody's; and the call finds its parameters where the path has them. */
static void try_target(const char *text, size_t n)
{
    static const char *const methods[] = {"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"};
    struct call *c = call_new(NULL);
    size_t found = 0, refused = 0;
    assert(c);
    if (target_parse(&(struct http_text){text, n}, &c->target))
        for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
            unsigned status = 0;
            char allow[128];
            c->op = route_find(&(struct http_text){methods[i], strlen(methods[i])}, &c->target, &status, allow, sizeof(allow));
            if (!c->op) {
                assert((status == 405) == (allow[0] != 0) && (status == 404 || status == 405) && !strstr(allow, methods[i]));
                refused += status == 405;
                continue;
            }
            found++;
            assert(strcmp(c->op->method, methods[i]) == 0);
            if (strstr(c->op->path, "/{box}"))
                assert(call_param(c, "box") == c->target.segment[2]);
            if (strstr(c->op->path, "/{job}"))
                assert(call_param(c, "job") == c->target.segment[4]);
            if (strstr(c->op->path, "/{token}"))
                assert(call_param(c, "token") == c->target.segment[2]);
            assert(call_param(c, "bo")[0] == 0);
        }
    assert(found == 0 ? refused == 0 : found + refused == sizeof(methods) / sizeof(methods[0]));
    call_drop(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    if (input_byte(&in) & 1)
        try_target((const char *)in.at, in.left);
    else
        try_values(op_chosen(&in), &in);
    return 0;
}
