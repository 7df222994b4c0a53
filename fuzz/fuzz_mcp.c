/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: the core of MCP. An input is a client with headers or lines, and its messages; behind the core are methods that answer at
 * once, later, after saying something, and after asking. Each request is answered once, nothing follows, and nothing stays. */
#include <assert.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "input.h"
#include "mcp/mcp.h"
#include "mcp/ticket.h"

static struct loop loop;
static struct mcp mcp;
static struct mcp_request *late;
static size_t last_count;
static char state[MCP_STATE_MAX]; /* the last that went out */
static char question[64];

/* --- methods --- */

static void echo(struct mcp_request *r)
{
    mcp_result(r, json_pack("{s:O?}", "params", r->message.params));
}

static void ask(struct mcp_request *r)
{
    if (r->answers && r->state) {
        assert(strcmp(r->state, "asked") == 0);
        return mcp_result(r, json_pack("{s:O}", "answers", r->answers));
    }
    mcp_ask(r,
            json_pack("{s:{s:s}, s:{s:s, s:{}}}", "a", "method", "elicitation/create", "b", "method", "sampling/createMessage", "params"),
            "asked");
}

static void forget(struct mcp_request *r)
{
    assert(r == late);
    late = NULL;
}

static void wait_for(struct mcp_request *r)
{
    if (late)
        return mcp_error(r, RPC_INTERNAL, "one waits already");
    late = r;
    r->left = forget;
}

static void wake(struct mcp_request *r)
{
    if (late)
        mcp_result(late, json_object());
    mcp_result(r, json_object());
}

static void say(struct mcp_request *r)
{
    mcp_progress(r, 1, 2, "half \xff way");
    mcp_notify(r, "notifications/message", json_object());
    mcp_result(r, NULL);
}

static const struct mcp_method methods[] = {
    {"echo", MCP_BOTH, NULL, false, false, echo},      {"tools/call", MCP_BOTH, "name", true, false, ask},
    {"wait", MCP_LEGACY, NULL, false, true, wait_for}, {"wake", MCP_MODERN | MCP_LEGACY, NULL, false, true, wake},
    {"say", MCP_BOTH, "uri", false, false, say},       {0},
};

static const struct mcp_offer offer = {.name = "fuzz", .title = "fuzz", .instructions = "", .capabilities = "{}", .methods = methods};

/* --- the carrier --- */

static void keep(const json_t *message)
{
    const char *s = json_string_value(json_object_get(json_object_get(message, "result"), "requestState"));
    const char *id = json_object_get(message, "method") ? json_string_value(json_object_get(message, "id")) : NULL;
    if (s && strlen(s) < sizeof(state))
        memcpy(state, s, strlen(s) + 1);
    if (id)
        snprintf(question, sizeof(question), "%s", id);
}

static void on_say(struct mcp_request *r, const json_t *message, unsigned status, bool last)
{
    char *text = message ? json_dumps(message, JSON_COMPACT) : NULL;
    assert(last || (message && r->streams && !r->answered));
    assert(!message || (text && !strchr(text, '\n')));
    assert(status >= 200 && status < 500 && !r->gone && r->answered == last);
    last_count += last;
    if (message) {
        assert((json_object_get(message, "result") || json_object_get(message, "error")) == last);
        if (last && r->message.id)
            assert(json_equal(json_object_get(message, "id"), r->message.id));
        keep(message);
    }
    free(text);
}

static const struct mcp_port port = {on_say};

/* Headers that agree with the message, as far as the input wants them to. */
static void give(struct mcp_client *c, uint8_t how, const char *p, size_t n)
{
    struct rpc_message m;
    const char *why;
    struct mcp_heads heads = {0};
    int code = rpc_parse(p, n, &m, &why);
    assert(code == 0 || (code <= -32600 && code >= -32700 && why[0]));
    if (how & 1)
        heads.version = how & 2 ? MCP_MODERN_VERSION : how & 4 ? MCP_LEGACY_VERSION : "2099-01-01";
    if (how & 8 && code == 0)
        heads.method = m.method;
    if (how & 16 && code == 0)
        heads.name = json_string_value(json_object_get(m.params, how & 32 ? "uri" : "name"));
    size_t before = last_count, open = mcp.count;
    struct mcp_request *r = mcp_take(c, &port, NULL, c->lasts ? NULL : &heads, p, n);
    if (r) {
        assert(r->answered ? last_count > before : mcp.count == open + 1);
        mcp_drop(r);
    } else
        assert(code == 0 && m.kind != RPC_REQUEST);
    rpc_done(&m);
}

/* The last state and the last question can be in a message: what a client got it may send. */
static void fill(struct buf *b, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (p[i] == '\x01')
            buf_add_text(b, state);
        else if (p[i] == '\x02')
            buf_add_text(b, question);
        else if (p[i] == '\x03')
            buf_add_text(b, "\"io.modelcontextprotocol/protocolVersion\":\"" MCP_MODERN_VERSION
                            "\",\"io.modelcontextprotocol/clientCapabilities\":{\"elicitation\":{}}");
        else
            buf_add(b, p + i, 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    uint8_t how = input_byte(&in);
    struct mcp_client one = {.mcp = &mcp, .offer = &offer, .lasts = how & 1, .streams = how & 2}, two = one;
    if (loop.epoll_fd == 0) {
        assert(loop_open(&loop, NULL) == 0);
        assert(mcp_init(&mcp, &loop));
    }
    state[0] = question[0] = 0;
    snprintf(two.who.token, sizeof(two.who.token), "other");
    while (in.left) {
        uint8_t what = input_byte(&in);
        size_t n;
        const uint8_t *end = memchr(in.at, '\n', in.left);
        const char *p = (const char *)input_bytes(&in, end ? (size_t)(end - in.at) : in.left, &n);
        struct buf text = {0};
        (void)input_byte(&in);
        buf_init(&text, 65536);
        fill(&text, p, n);
        give(what & 128 ? &two : &one, what, text.len ? (const char *)text.data : "", text.len);
        buf_done(&text);
        if (what & 64 && late)
            mcp_leave(late);
    }
    mcp_leave_all(&one);
    mcp_leave_all(&two);
    json_decref(one.capabilities);
    json_decref(two.capabilities);
    assert(mcp.count == 0 && !mcp.requests && !late && !loop.timers);
    return 0;
}
