/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the life of requests: from a message to its one answer, with what is said and asked between. */
#include "mcp/mcp.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "mcp/era.h"
#include "mcp/ticket.h"

bool mcp_init(struct mcp *m, struct loop *loop)
{
    *m = (struct mcp){.loop = loop};
    return getrandom(m->key, sizeof(m->key), 0) == (ssize_t)sizeof(m->key);
}

bool mcp_secret_name(const char *prefix, char *ret, size_t cap)
{
    uint8_t random[12];
    size_t at = (size_t)snprintf(ret, cap, "%s", prefix);
    if (at + 2 * sizeof(random) >= cap || getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return false;
    for (size_t i = 0; i < sizeof(random); i++, at += 2)
        snprintf(ret + at, 3, "%02x", random[i]);
    return true;
}

/* --- life --- */

static void on_ask_timer(struct loop_timer *t);

static struct mcp_request *new_request(struct mcp_client *c, const struct mcp_port *port, void *carrier)
{
    struct mcp_request *r = calloc(1, sizeof(*r));
    if (!r)
        return NULL;
    r->client = c;
    r->port = port;
    r->carrier = carrier;
    r->mcp = c->mcp;
    r->world = c->world;
    r->offer = c->offer;
    r->who = c->who;
    memcpy(r->box, c->box, sizeof(r->box));
    r->streams = c->streams;
    r->era = MCP_LEGACY;
    r->ask_timer.fire = on_ask_timer;
    r->held = 2; /* the carrier's and ours */
    r->next = c->mcp->requests;
    r->link = &c->mcp->requests;
    if (r->next)
        r->next->link = &r->next;
    c->mcp->requests = r;
    c->mcp->count++;
    r->listed = true;
    return r;
}

void mcp_hold(struct mcp_request *r)
{
    r->held++;
}

void mcp_drop(struct mcp_request *r)
{
    if (--r->held > 0)
        return;
    rpc_done(&r->message);
    json_decref(r->own_answers);
    free(r->state);
    free(r);
}

/* Nothing is awaited on its behalf any more. */
static void finish(struct mcp_request *r)
{
    void (*left)(struct mcp_request *) = r->left;
    if (!r->listed)
        return;
    r->listed = false;
    *r->link = r->next;
    if (r->next)
        r->next->link = r->link;
    r->mcp->count--;
    loop_disarm(r->mcp->loop, &r->ask_timer);
    r->left = NULL;
    if (left)
        left(r);
    mcp_drop(r);
}

void mcp_leave(struct mcp_request *r)
{
    r->gone = true;
    r->client = NULL;
    finish(r);
}

void mcp_leave_all(struct mcp_client *c)
{
    /* Whatever a request lets go of may end another. */
    for (struct mcp_request *r = c->mcp->requests; r;) {
        if (r->client != c) {
            r = r->next;
            continue;
        }
        mcp_leave(r);
        r = c->mcp->requests;
    }
}

/* --- answering --- */

static char *dump(const json_t *message, size_t *ret_len)
{
    char *text = json_dumps(message, JSON_COMPACT);
    *ret_len = text ? strlen(text) : 0;
    if (*ret_len > MCP_ANSWER_MAX) {
        free(text);
        text = NULL;
    }
    return text;
}

char *mcp_write(const struct mcp_request *r, const json_t *message, bool last, size_t *ret_len)
{
    char *text = dump(message, ret_len);
    if (text || !last)
        return text;
    json_t *failure = rpc_failure(r->message.id, RPC_INTERNAL, "the answer is too long; ask for less", NULL);
    text = failure ? dump(failure, ret_len) : NULL;
    json_decref(failure);
    return text;
}

/* Takes over message; NULL: whoever waits for it wants none. */
static void send_last(struct mcp_request *r, json_t *message, unsigned status)
{
    if (r->answered || r->gone) {
        json_decref(message);
        return;
    }
    mcp_hold(r);
    r->answered = true;
    r->port->say(r, message, status, true);
    json_decref(message);
    finish(r);
    mcp_drop(r);
}

/* Takes over message; NULL: there was no memory for it. */
static void send_answer(struct mcp_request *r, json_t *message, unsigned status)
{
    send_last(r, message ? message : rpc_failure(r->message.id, RPC_INTERNAL, "out of memory", NULL), status);
}

void mcp_result(struct mcp_request *r, json_t *result)
{
    if (r->era == MCP_MODERN && result)
        result = era_dress(r, result);
    send_answer(r, result ? rpc_answer(r->message.id, result) : NULL, 200);
}

void mcp_fail(struct mcp_request *r, unsigned status, int code, json_t *data, const char *text)
{
    send_answer(r, rpc_failure(r->message.id, code, text, data), status);
}

void mcp_error(struct mcp_request *r, int code, const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    mcp_fail(r, 200, code, NULL, text);
}

void mcp_notify(struct mcp_request *r, const char *method, json_t *params)
{
    json_t *message = params ? rpc_notice(method, params) : NULL;
    if (message && !r->answered && !r->gone && r->streams)
        r->port->say(r, message, 200, false);
    json_decref(message);
}

void mcp_progress(struct mcp_request *r, uint64_t done, uint64_t total, const char *message)
{
    if (!r->progress_token)
        return;
    json_t *p = json_pack("{s:O, s:I}", "progressToken", r->progress_token, "progress", (json_int_t)done);
    if (p && total)
        json_object_set_new(p, "total", json_integer((json_int_t)total));
    if (p && message)
        json_object_set_new(p, "message", rpc_text(message, strlen(message)));
    mcp_notify(r, "notifications/progress", p);
}

const char *mcp_param_text(const struct mcp_request *r, const char *key)
{
    return json_string_value(json_object_get(r->message.params, key));
}

/* --- asking --- */

/* What a client must be able to do to be asked this. */
static const char *capability_of(const char *method)
{
    static const struct {
        const char *method, *capability;
    } rows[] = {{"elicitation/create", "elicitation"}, {"sampling/createMessage", "sampling"}, {"roots/list", "roots"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strcmp(rows[i].method, method) == 0)
            return rows[i].capability;
    return "";
}

bool mcp_can(const struct mcp_request *r, const char *capability)
{
    if (r->era == MCP_MODERN)
        return json_is_object(json_object_get(r->capabilities, capability));
    if (!r->streams || !r->client)
        return false;
    return r->client->lasts ? json_is_object(json_object_get(r->client->capabilities, capability)) : true;
}

/* What a sealed state is bound to: whoever asks, about which box, for what. */
static void bound_to(const struct mcp_request *r, struct buf *ret)
{
    const json_t *arguments = json_object_get(r->message.params, "arguments");
    char *text = arguments ? json_dumps(arguments, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    const char *name = r->method->named_by ? mcp_param_text(r, r->method->named_by) : NULL;
    buf_addf(ret, "%s\n%s\n%s\n%s\n%s", r->who.token, r->box, r->method->name, name ? name : "", text ? text : "");
    free(text);
}

/* Leaves out what the client cannot answer. False: nothing is left, and it has been told. */
static bool choose_questions(struct mcp_request *r, json_t *questions)
{
    const char *key;
    json_t *q, *needed = json_object();
    void *next;
    json_object_foreach_safe(questions, next, key, q)
    {
        const char *capability = capability_of(json_string_value(json_object_get(q, "method")));
        if (mcp_can(r, capability))
            continue;
        json_object_set_new(needed, capability, json_object());
        json_object_del(questions, key);
    }
    bool some = json_object_size(questions) > 0;
    if (!some)
        mcp_fail(r, 400, RPC_NEEDS_CAPABILITY, json_pack("{s:O}", "requiredCapabilities", needed),
                 "this needs a client that can ask its user; the operator can answer from the command line instead");
    json_decref(needed);
    return some;
}

static void ask_modern(struct mcp_request *r, json_t *questions, const char *state)
{
    own_buf bound = {0}, ticket = {0};
    buf_init(&bound, MCP_ANSWER_MAX);
    buf_init(&ticket, MCP_STATE_MAX);
    bound_to(r, &bound);
    ticket_seal(r->mcp->key, buf_text(&bound), state, (uint64_t)clock_ms() + MCP_ASK_MS, &ticket);
    bool whole = !bound.failed && !ticket.failed;
    mcp_result(r, whole ? json_pack("{s:s, s:O, s:s}", "resultType", "input_required", "inputRequests", questions, "requestState",
                                    buf_text(&ticket))
                        : NULL);
}

static void ask_legacy(struct mcp_request *r, json_t *questions)
{
    const char *key;
    json_t *q;
    size_t n = 0;
    json_decref(r->own_answers);
    r->own_answers = json_object();
    json_object_foreach(questions, key, q)
    {
        struct question *open = &r->questions[n];
        if (n == MCP_QUESTIONS_MAX || !mcp_secret_name("pale-", open->id, sizeof(open->id)))
            break;
        n++;
        snprintf(open->key, sizeof(open->key), "%s", key);
        open->open = true;
    }
    loop_arm(r->mcp->loop, &r->ask_timer, clock_ms() + MCP_ASK_MS);
    /* All are open before the first is sent: an answer may come at once. */
    for (size_t i = 0; i < n && !r->gone && !r->answered; i++) {
        q = json_object_get(questions, r->questions[i].key);
        json_t *params = json_object_get(q, "params");
        json_t *m =
            rpc_question(r->questions[i].id, json_string_value(json_object_get(q, "method")), params ? json_incref(params) : json_object());
        if (m)
            r->port->say(r, m, 200, false);
        json_decref(m);
    }
}

void mcp_ask(struct mcp_request *r, json_t *questions, const char *state)
{
    mcp_hold(r);
    if (!questions)
        mcp_error(r, RPC_INTERNAL, "out of memory");
    else if (choose_questions(r, questions)) {
        if (r->era == MCP_MODERN)
            ask_modern(r, questions, state);
        else {
            free(r->state);
            r->state = strdup(state);
            ask_legacy(r, questions);
        }
    }
    json_decref(questions);
    mcp_drop(r);
}

static bool is_asking(const struct mcp_request *r)
{
    for (size_t i = 0; i < MCP_QUESTIONS_MAX; i++)
        if (r->questions[i].open)
            return true;
    return false;
}

static void on_ask_timer(struct loop_timer *t)
{
    struct mcp_request *r = (struct mcp_request *)((char *)t - offsetof(struct mcp_request, ask_timer));
    mcp_error(r, RPC_INTERNAL, "nobody answered the question within %d minutes", MCP_ASK_MS / 60000);
}

/* An answer of a legacy client: the id is a secret of that question, and the client must be who was asked. */
static void take_response(struct mcp_client *c, const struct rpc_message *m)
{
    const char *id = json_string_value(m->id);
    for (struct mcp_request *r = c->mcp->requests; id && r; r = r->next) {
        if (strcmp(r->box, c->box) != 0 || strcmp(r->who.token, c->who.token) != 0 || (c->lasts && r->client != c))
            continue;
        for (size_t i = 0; i < MCP_QUESTIONS_MAX; i++) {
            struct question *q = &r->questions[i];
            if (!q->open || strcmp(q->id, id) != 0)
                continue;
            q->open = false;
            if (m->result)
                json_object_set(r->own_answers, q->key, m->result);
            if (is_asking(r))
                return;
            loop_disarm(r->mcp->loop, &r->ask_timer);
            r->answers = r->own_answers;
            r->method->run(r);
            return;
        }
    }
}

/* --- messages that need no answer --- */

/* Without sessions two legacy clients of one token may use the same id: then neither is cancelled, rather than the wrong one. */
static void take_cancel(struct mcp_client *c, const struct rpc_message *m)
{
    const json_t *id = json_object_get(m->params, "requestId");
    struct mcp_request *found = NULL;
    size_t n = 0;
    for (struct mcp_request *r = c->mcp->requests; r; r = r->next) {
        bool his = c->lasts ? r->client == c
                            : r->era == MCP_LEGACY && !(r->client && r->client->lasts) && strcmp(r->box, c->box) == 0 &&
                                  strcmp(r->who.token, c->who.token) == 0;
        if (!his || !rpc_same_id(id, r->message.id))
            continue;
        found = r;
        n++;
    }
    if (n != 1)
        return;
    found->goes_on = false;
    mcp_hold(found);
    void (*left)(struct mcp_request *) = found->left;
    found->left = NULL;
    if (left)
        left(found);
    send_last(found, NULL, 200);
    mcp_drop(found);
}

static void take_notice(struct mcp_client *c, const struct rpc_message *m)
{
    if (strcmp(m->method, "notifications/cancelled") == 0)
        take_cancel(c, m);
}

/* --- requests --- */

static void no_content(struct mcp_request *r)
{
    mcp_result(r, json_object());
}

static const struct mcp_method own_methods[] = {
    {"initialize", MCP_LEGACY, NULL, false, false, era_initialize},
    {"ping", MCP_LEGACY, NULL, false, false, no_content},
    {"server/discover", MCP_MODERN, NULL, false, true, era_discover},
    {0},
};

static const struct mcp_method *find_method(const struct mcp_method *rows, const char *name, enum mcp_era era)
{
    for (; rows->name; rows++)
        if ((rows->eras & era) && strcmp(rows->name, name) == 0)
            return rows;
    return NULL;
}

/* What came back with a request that answers a question. A state that is not ours is an error; one may be missing. */
static bool take_answers(struct mcp_request *r)
{
    const json_t *given = json_object_get(r->message.params, "inputResponses"), *state = json_object_get(r->message.params, "requestState");
    const char *key;
    json_t *item;
    own_buf bound = {0}, text = {0};
    if (!r->method->may_ask || r->era != MCP_MODERN || (!given && !state))
        return true;
    if (given && !json_is_object(given))
        return mcp_fail(r, 400, RPC_BAD_PARAMS, NULL, "inputResponses: an object"), false;
    json_object_foreach((json_t *)given, key, item) if (!json_is_object(item)) return mcp_fail(
        r, 400, RPC_BAD_PARAMS, NULL, "inputResponses: an object for each question"),
        false;
    buf_init(&bound, MCP_ANSWER_MAX);
    buf_init(&text, MCP_STATE_MAX);
    bound_to(r, &bound);
    if (state && (!json_is_string(state) || json_string_length(state) > MCP_STATE_MAX ||
                  !ticket_open(r->mcp->key, buf_text(&bound), json_string_value(state), (uint64_t)clock_ms(), &text)))
        return mcp_fail(r, 400, RPC_BAD_PARAMS, NULL,
                        "requestState: it is not ours, of another request, or too old; call again without it"),
               false;
    if (state)
        r->state = strdup(buf_text(&text));
    r->answers = given;
    return true;
}

static void run_request(struct mcp_request *r, const struct mcp_heads *heads)
{
    const char *name = r->message.method;
    if (!era_check(r, heads))
        return;
    r->method = find_method(own_methods, name, r->era);
    if (!r->method)
        r->method = find_method(r->offer->methods, name, r->era);
    if (!r->method) {
        char text[RPC_METHOD_MAX + 64];
        snprintf(text, sizeof(text), "there is no method %s", name);
        return mcp_fail(r, r->era == MCP_MODERN ? 404 : 200, RPC_NO_METHOD, NULL, text);
    }
    const json_t *token = json_object_get(json_object_get(r->message.params, "_meta"), "progressToken");
    /* It comes back every second: one that is longer than an id is not a client's that wants to hear. */
    if (rpc_is_id(token))
        r->progress_token = token;
    if (era_check_name(r, heads) && take_answers(r))
        r->method->run(r);
}

/* Is there no room for this one? Its own share, and a part that tokens cannot take, keep others from being shut out. */
static bool is_too_much(const struct mcp_request *r)
{
    const char *token = r->who.token;
    size_t his = 0;
    if (!token[0])
        return r->mcp->count > MCP_PENDING_MAX;
    for (const struct mcp_request *x = r->mcp->requests; x; x = x->next)
        his += strcmp(x->who.token, token) == 0;
    return his > MCP_TOKEN_MAX || r->mcp->count > MCP_PENDING_MAX - MCP_PENDING_MAX / 8;
}

struct mcp_request *mcp_take(struct mcp_client *c, const struct mcp_port *port, void *carrier, const struct mcp_heads *heads, const char *p,
                             size_t n)
{
    const char *why = "";
    struct mcp_request *r = new_request(c, port, carrier);
    if (!r)
        return NULL;
    mcp_hold(r);
    int code = rpc_parse(p, n, &r->message, &why);
    if (code < 0)
        mcp_fail(r, 400, code, NULL, why);
    else if (r->message.kind == RPC_REQUEST && is_too_much(r))
        mcp_fail(r, 429, RPC_INTERNAL, NULL, "too many requests are under way; try again in a moment");
    else if (r->message.kind == RPC_REQUEST)
        run_request(r, heads);
    if (code == 0 && r->message.kind != RPC_REQUEST) {
        struct rpc_message m = r->message;
        r->message = (struct rpc_message){0};
        r->gone = true;
        finish(r);
        mcp_drop(r); /* the carrier's, who gets none */
        mcp_drop(r);
        if (m.kind == RPC_RESPONSE)
            take_response(c, &m);
        else
            take_notice(c, &m);
        rpc_done(&m);
        return NULL;
    }
    mcp_drop(r);
    return r;
}
