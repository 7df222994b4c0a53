/* SPDX-License-Identifier: Apache-2.0 */
/* Owns JSON-RPC messages. */
#include "mcp/rpc.h"

#include <string.h>

#include "base/quote.h"

/* No deeper than that, and no more values than are left? */
static bool is_within(json_t *v, int depth, size_t *left)
{
    const char *key;
    size_t i;
    json_t *item;
    if (*left == 0 || (depth == 0 && (json_is_object(v) || json_is_array(v))))
        return false;
    --*left;
    json_array_foreach(v, i, item) if (!is_within(item, depth - 1, left)) return false;
    json_object_foreach(v, key, item) if (!is_within(item, depth - 1, left)) return false;
    return true;
}

bool rpc_is_id(const json_t *v)
{
    return json_is_integer(v) || (json_is_string(v) && json_string_length(v) <= RPC_ID_MAX);
}

static int read_response(struct rpc_message *m, const char **ret_why)
{
    m->kind = RPC_RESPONSE;
    m->result = json_object_get(m->whole, "result");
    m->error = json_object_get(m->whole, "error");
    if (!m->id || (m->result != NULL) == (m->error != NULL) || (m->error && !json_is_object(m->error)))
        return *ret_why = "a message has a method, or an id and one of result and error", RPC_BAD_MESSAGE;
    return 0;
}

static int read_call(struct rpc_message *m, json_t *method, const char **ret_why)
{
    m->kind = m->id ? RPC_REQUEST : RPC_NOTIFICATION;
    if (!json_is_string(method) || json_string_length(method) == 0 || json_string_length(method) > RPC_METHOD_MAX)
        return *ret_why = "method: the name of one", RPC_BAD_MESSAGE;
    m->method = json_string_value(method);
    m->params = json_object_get(m->whole, "params");
    if (m->params && !json_is_object(m->params))
        return *ret_why = "params: an object", RPC_BAD_MESSAGE;
    return 0;
}

int rpc_parse(const char *p, size_t n, struct rpc_message *ret, const char **ret_why)
{
    json_error_t why;
    size_t left = RPC_VALUES_MAX;
    *ret = (struct rpc_message){0};
    if (memchr(p, 0, n)) /* jansson steps over NULs between tokens */
        return *ret_why = "the message has a NUL byte", RPC_BAD_JSON;
    ret->whole = json_loadb(p, n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why);
    if (!ret->whole)
        return *ret_why = "the message is not JSON, or has a key twice", RPC_BAD_JSON;
    if (json_is_array(ret->whole))
        return *ret_why = "one message at a time: a list of them is not taken", RPC_BAD_MESSAGE;
    if (!json_is_object(ret->whole))
        return *ret_why = "a message is an object", RPC_BAD_MESSAGE;
    json_t *id = json_object_get(ret->whole, "id"), *method = json_object_get(ret->whole, "method");
    const json_t *version = json_object_get(ret->whole, "jsonrpc");
    if (id && rpc_is_id(id))
        ret->id = id;
    if (id && !ret->id)
        return *ret_why = "id: a text or a whole number", RPC_BAD_MESSAGE;
    if (!is_within(ret->whole, RPC_DEPTH_MAX, &left))
        return *ret_why = "the message is nested too deep, or has too many values", RPC_BAD_MESSAGE;
    if (!json_is_string(version) || strcmp(json_string_value(version), "2.0") != 0)
        return *ret_why = "jsonrpc: \"2.0\"", RPC_BAD_MESSAGE;
    return method ? read_call(ret, method, ret_why) : read_response(ret, ret_why);
}

void rpc_done(struct rpc_message *m)
{
    json_decref(m->whole);
    *m = (struct rpc_message){0};
}

bool rpc_same_id(const json_t *a, const json_t *b)
{
    return a && b && json_equal(a, b);
}

/* --- writing --- */

static json_t *message(void)
{
    json_t *m = json_object();
    if (m && json_object_set_new(m, "jsonrpc", json_string("2.0")) < 0) {
        json_decref(m);
        return NULL;
    }
    return m;
}

/* Takes over value. */
static json_t *put(json_t *m, const char *key, json_t *value)
{
    if (m && value && json_object_set_new(m, key, value) == 0)
        return m;
    if (!m)
        json_decref(value);
    json_decref(m);
    return NULL;
}

static json_t *id_copy(const json_t *id)
{
    return id ? json_deep_copy(id) : json_null();
}

json_t *rpc_answer(const json_t *id, json_t *result)
{
    return put(put(message(), "id", id_copy(id)), "result", result);
}

json_t *rpc_failure(const json_t *id, int code, const char *text, json_t *data)
{
    json_t *error = put(put(json_object(), "code", json_integer(code)), "message", rpc_text(text, strlen(text)));
    if (data)
        error = put(error, "data", data);
    return put(put(message(), "id", id_copy(id)), "error", error);
}

json_t *rpc_notice(const char *method, json_t *params)
{
    return put(put(message(), "method", json_string(method)), "params", params);
}

json_t *rpc_question(const char *id, const char *method, json_t *params)
{
    return put(put(put(message(), "id", json_string(id)), "method", json_string(method)), "params", params);
}

json_t *rpc_text(const void *p, size_t n)
{
    const unsigned char *at = p, *end = at + n;
    own_buf clean = {0};
    unsigned point;
    buf_init(&clean, 3 * n + 1);
    while (at < end) {
        size_t step = quote_utf8(at, (size_t)(end - at), &point);
        if (step > 0 && point != 0)
            buf_add(&clean, at, step);
        else
            buf_add_text(&clean, "\xEF\xBF\xBD");
        at += step > 0 ? step : 1;
    }
    return clean.failed ? NULL : json_stringn(clean.len ? (const char *)clean.data : "", clean.len);
}
