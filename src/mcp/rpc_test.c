/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for mcp/rpc. */
#include "mcp/rpc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/own.h"
#include "base/test.h"

static int parse(const char *text, struct rpc_message *m)
{
    const char *why = "";
    return rpc_parse(text, strlen(text), m, &why);
}

static int code_of(const char *text)
{
    struct rpc_message m;
    int code = parse(text, &m);
    rpc_done(&m);
    return code;
}

static void rpc_reads_a_request(void **state)
{
    struct rpc_message m;
    (void)state;
    assert_int_equal(parse("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\",\"params\":{\"a\":1}}", &m), 0);
    assert_int_equal(m.kind, RPC_REQUEST);
    assert_string_equal(m.method, "ping");
    assert_int_equal(json_integer_value(m.id), 7);
    assert_int_equal(json_integer_value(json_object_get(m.params, "a")), 1);
    rpc_done(&m);
}

static void rpc_tells_the_kinds_apart(void **state)
{
    struct rpc_message m;
    (void)state;
    assert_int_equal(parse("{\"jsonrpc\":\"2.0\",\"method\":\"a\"}", &m), 0);
    assert_int_equal(m.kind, RPC_NOTIFICATION);
    rpc_done(&m);
    assert_int_equal(parse("{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":{}}", &m), 0);
    assert_int_equal(m.kind, RPC_RESPONSE);
    rpc_done(&m);
    assert_int_equal(parse("{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"error\":{\"code\":1,\"message\":\"\"}}", &m), 0);
    assert_int_equal(m.kind, RPC_RESPONSE);
    rpc_done(&m);
}

static void rpc_refuses_what_is_no_json(void **state)
{
    static const char *const bad[] = {"",
                                      "{",
                                      "nope",
                                      "{\"jsonrpc\":\"2.0\",\"jsonrpc\":\"2.0\",\"method\":\"a\"}",
                                      "{\"jsonrpc\":\"2.0\",\"method\":\"a\"} x",
                                      "{\"jsonrpc\":\"2.0\",\"method\":\"\xff\"}"};
    const char *why = "";
    struct rpc_message m;
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(code_of(bad[i]), RPC_BAD_JSON);
    assert_int_equal(rpc_parse("{}\0", 3, &m, &why), RPC_BAD_JSON);
    rpc_done(&m);
}

static void rpc_refuses_what_is_no_message(void **state)
{
    static const char *const bad[] = {
        "[]",
        "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]",
        "1",
        "{}",
        "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"a\"}",
        "{\"jsonrpc\":2.0,\"id\":1,\"method\":\"a\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"a\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"a\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"a\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":[1],\"method\":\"a\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":true,\"method\":\"a\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"params\":[]}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"params\":null}",
        "{\"jsonrpc\":\"2.0\",\"id\":1}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{},\"error\":{}}",
        "{\"jsonrpc\":\"2.0\",\"result\":{}}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":7}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(code_of(bad[i]), RPC_BAD_MESSAGE);
}

static void rpc_keeps_the_id_of_a_bad_request(void **state)
{
    struct rpc_message m;
    (void)state;
    assert_int_equal(parse("{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":7}", &m), RPC_BAD_MESSAGE);
    assert_string_equal(json_string_value(m.id), "x");
    rpc_done(&m);
}

static void rpc_refuses_more_values_than_are_worth_their_memory(void **state)
{
    static const char open[] = "{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"params\":{\"a\":[";
    own_buf b = {0};
    (void)state;
    /* The message, its two texts, the params, the list and what is in it. */
    for (size_t n = RPC_VALUES_MAX - 5; n < RPC_VALUES_MAX - 3; n++) {
        buf_init(&b, 1 << 20);
        buf_add_text(&b, open);
        for (size_t i = 0; i < n; i++)
            buf_add_text(&b, i ? ",[]" : "[]");
        buf_add_text(&b, "]}}");
        assert_int_equal(code_of(buf_text(&b)), n == RPC_VALUES_MAX - 5 ? 0 : RPC_BAD_MESSAGE);
        buf_done(&b);
    }
}

static void rpc_refuses_what_is_nested_too_deep(void **state)
{
    (void)state;
    for (int depth = RPC_DEPTH_MAX - 3; depth < RPC_DEPTH_MAX + 3; depth++) {
        char text[400] = "{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"params\":{\"a\":";
        for (int i = 0; i < depth; i++)
            strncat(text, "[", sizeof(text) - strlen(text) - 1);
        for (int i = 0; i < depth; i++)
            strncat(text, "]", sizeof(text) - strlen(text) - 1);
        strncat(text, "}}", sizeof(text) - strlen(text) - 1);
        assert_int_equal(code_of(text), depth + 2 <= RPC_DEPTH_MAX ? 0 : RPC_BAD_MESSAGE);
    }
}

static void rpc_takes_no_prefix_of_a_message(void **state)
{
    static const char good[] =
        "{\"jsonrpc\":\"2.0\",\"id\":\"a\\u00e9\",\"method\":\"tools/call\",\"params\":{\"name\":\"exec\",\"arguments\":{}}}";
    (void)state;
    for (size_t n = 0; n < sizeof(good) - 1; n++) {
        struct rpc_message m;
        const char *why = "";
        own_mem char *part = malloc(n + 1);
        memcpy(part, good, n);
        assert_int_equal(rpc_parse(part, n, &m, &why), RPC_BAD_JSON);
        rpc_done(&m);
    }
}

static void rpc_tells_ids_apart(void **state)
{
    json_t *one = json_integer(1), *text = json_string("1"), *same = json_integer(1);
    (void)state;
    assert_true(rpc_same_id(one, same));
    assert_false(rpc_same_id(one, text));
    assert_false(rpc_same_id(NULL, NULL));
    json_decref(one);
    json_decref(text);
    json_decref(same);
}

static void rpc_makes_text_of_any_bytes(void **state)
{
    (void)state;
    json_t *t = rpc_text("a\xff\0b\xc3\xa9", 6);
    assert_string_equal(json_string_value(t), "a\xEF\xBF\xBD\xEF\xBF\xBD"
                                              "b\xc3\xa9");
    json_decref(t);
    t = rpc_text("", 0);
    assert_string_equal(json_string_value(t), "");
    json_decref(t);
}

static void rpc_writes_an_error_without_an_id(void **state)
{
    (void)state;
    json_t *m = rpc_failure(NULL, RPC_BAD_JSON, "x", NULL);
    char *text = json_dumps(m, JSON_COMPACT);
    assert_string_equal(text, "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"x\"}}");
    free(text);
    json_decref(m);
}

TESTS(cmocka_unit_test(rpc_reads_a_request), cmocka_unit_test(rpc_tells_the_kinds_apart), cmocka_unit_test(rpc_refuses_what_is_no_json),
      cmocka_unit_test(rpc_refuses_what_is_no_message), cmocka_unit_test(rpc_keeps_the_id_of_a_bad_request),
      cmocka_unit_test(rpc_refuses_what_is_nested_too_deep), cmocka_unit_test(rpc_refuses_more_values_than_are_worth_their_memory),
      cmocka_unit_test(rpc_takes_no_prefix_of_a_message), cmocka_unit_test(rpc_tells_ids_apart),
      cmocka_unit_test(rpc_makes_text_of_any_bytes), cmocka_unit_test(rpc_writes_an_error_without_an_id))
