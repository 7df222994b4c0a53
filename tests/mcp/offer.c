/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the offer of the fixture: each row of its file is a thing that is offered, and how it behaves when it is used.
 *
 *     "is"      what a list says of it
 *     "steps"   said before the answer, 50 ms apart: {"log": text} or {"progress": of 100}
 *     "asks"    rounds of questions to the client, each {key: {method, params}}
 *     "sealed"  an answer to a question counts only with the state that went out with it
 *     "tells"   {filter, method}: a notification to those who listen for it
 *     "result"  the answer
 *
 * In texts {a.b} stands for a value of the request's arguments or of the client's answers. */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "mcp/era.h"
#include "ops/world.h"

#define META "io.modelcontextprotocol/"
#define STEP_MS 50

static json_t *offer;
static size_t log_level; /* of legacy clients: without sessions it is everybody's */

/* --- texts --- */

static const json_t *look_up(const json_t *scope, const char *path, size_t n)
{
    char key[64];
    while (scope && n > 0) {
        const char *dot = memchr(path, '.', n);
        size_t part = dot ? (size_t)(dot - path) : n;
        snprintf(key, sizeof(key), "%.*s", (int)part, path);
        scope = json_object_get(scope, key);
        path += dot ? part + 1 : part;
        n -= dot ? part + 1 : part;
    }
    return scope;
}

static json_t *filled_text(const char *text, const json_t *scope)
{
    own_buf b = {0};
    buf_init(&b, 1u << 20);
    while (*text) {
        const char *close = *text == '{' ? strchr(text, '}') : NULL;
        const json_t *v = close ? look_up(scope, text + 1, (size_t)(close - text - 1)) : NULL;
        if (!v || v == scope) {
            buf_add(&b, text++, 1);
            continue;
        }
        char *dumped = json_is_string(v) ? NULL : json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);
        buf_add_text(&b, dumped ? dumped : json_string_value(v));
        free(dumped);
        text = close + 1;
    }
    return json_string(buf_text(&b));
}

/* A copy of what the file has, with its texts filled in. */
static json_t *filled(const json_t *v, const json_t *scope)
{
    const char *key;
    json_t *item;
    size_t i;
    if (json_is_string(v))
        return filled_text(json_string_value(v), scope);
    if (!json_is_object(v) && !json_is_array(v))
        return json_deep_copy(v);
    json_t *copy = json_is_object(v) ? json_object() : json_array();
    json_object_foreach((json_t *)v, key, item) json_object_set_new(copy, key, filled(item, scope));
    json_array_foreach(v, i, item) json_array_append_new(copy, filled(item, scope));
    return copy;
}

static json_t *scope_of(const struct mcp_request *r)
{
    json_t *scope = json_object();
    json_object_update(scope, json_object_get(r->message.params, "arguments"));
    json_object_update(scope, (json_t *)r->answers);
    return scope;
}

static void answer(struct mcp_request *r, const json_t *row)
{
    json_t *scope = scope_of(r);
    mcp_result(r, filled(json_object_get(row, "result"), scope));
    json_decref(scope);
}

/* --- what is said before the answer --- */

static size_t rank(const char *level)
{
    static const char *const levels[] = {"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"};
    size_t i = 0;
    while (i < sizeof(levels) / sizeof(levels[0]) && (!level || strcmp(level, levels[i]) != 0))
        i++;
    return i;
}

static const char *level_of(const struct mcp_request *r)
{
    return json_string_value(json_object_get(json_object_get(r->message.params, "_meta"), META "logLevel"));
}

/* A modern request hears what it asks for, and nothing unless it does. */
static bool is_heard(const struct mcp_request *r)
{
    return (r->era == MCP_MODERN ? rank(level_of(r)) : log_level) <= rank("info");
}

struct walk {
    struct loop_timer timer;
    struct mcp_request *r;
    const json_t *row;
    size_t at;
};

static void end_walk(struct mcp_request *r)
{
    struct walk *w = r->own;
    r->own = NULL;
    loop_disarm(&r->world->loop, &w->timer);
    free(w);
}

static void on_step(struct loop_timer *t)
{
    struct walk *w = (struct walk *)((char *)t - offsetof(struct walk, timer));
    struct mcp_request *r = w->r;
    const json_t *step = json_array_get(json_object_get(w->row, "steps"), w->at++), *log = json_object_get(step, "log"),
                 *progress = json_object_get(step, "progress");
    if (!step)
        return answer(r, w->row);
    loop_arm(&r->world->loop, t, clock_ms() + STEP_MS);
    if (log && is_heard(r))
        mcp_notify(r, "notifications/message", json_pack("{s:s, s:O}", "level", "info", "data", log));
    else if (progress)
        mcp_progress(r, (uint64_t)json_integer_value(progress), 100, NULL);
}

static void begin_walk(struct mcp_request *r, const json_t *row)
{
    struct walk *w = calloc(1, sizeof(*w));
    if (!w)
        return mcp_error(r, RPC_INTERNAL, "out of memory");
    *w = (struct walk){.timer = {.fire = on_step}, .r = r, .row = row};
    r->own = w;
    r->left = end_walk;
    on_step(&w->timer);
}

/* --- questions --- */

/* "sampling/createMessage" is asked of who has told of "sampling". */
static bool can_answer(const struct mcp_request *r, const json_t *question)
{
    char capability[32];
    const char *method = json_string_value(json_object_get(question, "method"));
    snprintf(capability, sizeof(capability), "%.*s", (int)strcspn(method, "/"), method);
    return mcp_can(r, capability);
}

static bool has_answered(const struct mcp_request *r, const json_t *questions)
{
    const char *key;
    json_t *q;
    json_object_foreach((json_t *)questions, key, q) if (can_answer(r, q) && !json_object_get(r->answers, key)) return false;
    return r->answers != NULL;
}

/* Which round the client's answers are for is what the state says; where none is needed, the first. */
static void ask_or_answer(struct mcp_request *r, const json_t *row)
{
    const json_t *rounds = json_object_get(row, "asks");
    bool counts = r->state || !json_is_true(json_object_get(row, "sealed"));
    size_t round = r->state ? (size_t)(r->state[0] - '0') : 0;
    char state[2] = "0";
    if (counts && has_answered(r, json_array_get(rounds, round)))
        round++;
    else if (r->era == MCP_LEGACY && r->answers)
        return mcp_error(r, RPC_BAD_PARAMS, "the client has not answered");
    if (round == json_array_size(rounds))
        return answer(r, row);
    json_t *scope = scope_of(r);
    state[0] = (char)('0' + round);
    mcp_ask(r, filled(json_array_get(rounds, round), scope), state);
    json_decref(scope);
}

/* --- those who listen --- */

struct ear {
    struct mcp_request *r;
    const json_t *filter;
    struct ear *next;
};

static struct ear *ears;

static void end_ear(struct mcp_request *r)
{
    struct ear **at = &ears, *e = r->own;
    r->own = NULL;
    while (*at != e)
        at = &(*at)->next;
    *at = e->next;
    free(e);
}

static void tell(struct mcp_request *r, const char *method, json_t *params)
{
    json_object_set_new(params, "_meta", json_pack("{s:O}", META "subscriptionId", r->message.id));
    mcp_notify(r, method, params);
}

static void tell_all(const json_t *what)
{
    const char *filter = json_string_value(json_object_get(what, "filter")), *method = json_string_value(json_object_get(what, "method"));
    for (struct ear *e = ears, *next; e; e = next) {
        next = e->next;
        if (json_is_true(json_object_get(e->filter, filter)))
            tell(e->r, method, json_object());
    }
}

static void subscriptions_listen(struct mcp_request *r)
{
    json_t *filter = json_object_get(r->message.params, "notifications");
    struct ear *e = json_is_object(filter) ? calloc(1, sizeof(*e)) : NULL;
    if (!e)
        return mcp_error(r, RPC_BAD_PARAMS, "notifications: an object");
    *e = (struct ear){r, filter, ears};
    ears = e;
    r->own = e;
    r->left = end_ear;
    tell(r, "notifications/subscriptions/acknowledged", json_pack("{s:O}", "notifications", filter));
}

/* --- methods --- */

static void use(struct mcp_request *r, const json_t *row)
{
    const json_t *tells = json_object_get(row, "tells");
    if (tells)
        tell_all(tells);
    if (json_object_get(row, "steps"))
        begin_walk(r, row);
    else if (json_object_get(row, "asks"))
        ask_or_answer(r, row);
    else
        answer(r, row);
}

static const json_t *find(const char *kind, const char *key, const char *value)
{
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(offer, kind), i, row)
    {
        const char *is = json_string_value(json_object_get(json_object_get(row, "is"), key));
        if (is && value && strcmp(is, value) == 0)
            return row;
    }
    return NULL;
}

static void list(struct mcp_request *r, const char *kind)
{
    json_t *items = json_array(), *row;
    size_t i;
    json_array_foreach(json_object_get(offer, kind), i, row) json_array_append(items, json_object_get(row, "is"));
    mcp_result(r, json_pack("{s:o}", kind, items));
}

static void tools_list(struct mcp_request *r)
{
    list(r, "tools");
}

static void prompts_list(struct mcp_request *r)
{
    list(r, "prompts");
}

static void resources_list(struct mcp_request *r)
{
    list(r, "resources");
}

static void templates_list(struct mcp_request *r)
{
    list(r, "resourceTemplates");
}

static void tools_call(struct mcp_request *r)
{
    const json_t *row = find("tools", "name", mcp_param_text(r, "name"));
    row ? use(r, row) : mcp_error(r, RPC_BAD_PARAMS, "there is no such tool");
}

static void prompts_get(struct mcp_request *r)
{
    const json_t *row = find("prompts", "name", mcp_param_text(r, "name"));
    row ? use(r, row) : mcp_error(r, RPC_BAD_PARAMS, "there is no such prompt");
}

/* test://template/{id}/data */
static bool read_template(struct mcp_request *r, const char *uri)
{
    static const char before[] = "test://template/", after[] = "/data";
    size_t n = strlen(uri), edges = sizeof(before) - 1 + sizeof(after) - 1;
    if (n <= edges || strncmp(uri, before, sizeof(before) - 1) != 0 || strcmp(uri + n - sizeof(after) + 1, after) != 0)
        return false;
    json_t *scope = json_pack("{s:s%, s:s}", "id", uri + sizeof(before) - 1, n - edges, "uri", uri);
    const json_t *row = json_array_get(json_object_get(offer, "resourceTemplates"), 0);
    mcp_result(r, filled(json_object_get(row, "result"), scope));
    json_decref(scope);
    return true;
}

static void resources_read(struct mcp_request *r)
{
    const char *uri = mcp_param_text(r, "uri");
    const json_t *row = find("resources", "uri", uri);
    if (row)
        return use(r, row);
    if (!uri || !read_template(r, uri))
        mcp_fail(r, 200, RPC_BAD_PARAMS, json_pack("{s:s}", "uri", uri ? uri : ""), "there is no such resource");
}

static void completion(struct mcp_request *r)
{
    mcp_result(r, json_pack("{s:{s:[], s:i, s:b}}", "completion", "values", "total", 0, "hasMore", 0));
}

static void set_level(struct mcp_request *r)
{
    size_t level = rank(mcp_param_text(r, "level"));
    if (level > rank("emergency"))
        return mcp_error(r, RPC_BAD_PARAMS, "level: one of debug … emergency");
    log_level = level;
    mcp_result(r, json_object());
}

static void nothing(struct mcp_request *r)
{
    mcp_result(r, json_object());
}

static const struct mcp_method methods[] = {
    {"tools/list", MCP_BOTH, NULL, false, true, tools_list},
    {"tools/call", MCP_BOTH, "name", true, false, tools_call},
    {"prompts/list", MCP_BOTH, NULL, false, true, prompts_list},
    {"prompts/get", MCP_BOTH, "name", true, false, prompts_get},
    {"resources/list", MCP_BOTH, NULL, false, true, resources_list},
    {"resources/templates/list", MCP_BOTH, NULL, false, true, templates_list},
    {"resources/read", MCP_BOTH, "uri", true, true, resources_read},
    {"completion/complete", MCP_BOTH, NULL, false, false, completion},
    {"logging/setLevel", MCP_LEGACY, NULL, false, false, set_level},
    {"resources/subscribe", MCP_LEGACY, NULL, false, false, nothing},
    {"resources/unsubscribe", MCP_LEGACY, NULL, false, false, nothing},
    {"subscriptions/listen", MCP_MODERN, NULL, false, false, subscriptions_listen},
    {0},
};

const struct mcp_offer fixture_offer = {
    .name = "pale-fixture",
    .title = "pale's fixture",
    .instructions = "For the conformance suite.",
    .capabilities = "{\"tools\": {\"listChanged\": true}, \"prompts\": {\"listChanged\": true}, \"resources\": {\"subscribe\": true},"
                    " \"completions\": {}, \"logging\": {}}",
    .methods = methods,
};

bool fixture_load(const char *path)
{
    json_error_t why;
    offer = json_load_file(path, JSON_REJECT_DUPLICATES, &why);
    if (!offer)
        fprintf(stderr, "%s:%d: %s\n", path, why.line, why.text);
    return offer != NULL;
}
