/* SPDX-License-Identifier: Apache-2.0 */
/* The Model Context Protocol, both of its eras, apart from what is offered through it and from what carries its messages.
 *
 * How it works: a carrier (mcp/http.c, mcp/linewise.c) hands over each message with what it knows of the client; the core reads it, finds
 * out which era it is of, checks what that era asks for, and runs the method. A method answers once, at once or later, and may say
 * things before. The modern era (2026-07-28) has no state: every request says who asks and what he can do, and a question to the client
 * is an answer (`input_required`) after which the client asks again with what it was asked for. In the legacy era (2025-11-25 and older)
 * a question is a request to the client while the answer is awaited. A method sees no difference: mcp_ask, and it is run again with
 * r->answers. Nothing a box says becomes part of a message but as a value in it. */
#pragma once

#include <jansson.h>

#include "base/buf.h"
#include "base/loop.h"
#include "mcp/rpc.h"
#include "ops/call.h"

#define MCP_MODERN_VERSION "2026-07-28"
#define MCP_LEGACY_VERSION "2025-11-25" /* the newest of its era */
#define MCP_ANSWER_MAX (4u << 20)       /* bytes of one message to a client */
#define MCP_ASK_MS 600000               /* for a person to answer */
#define MCP_QUESTIONS_MAX 8u            /* of one request at once */
#define MCP_STATE_MAX 4096u             /* bytes of a sealed state */
#define MCP_PENDING_MAX 2048u           /* requests under way in all, an eighth of them for who needs no token, … */
#define MCP_TOKEN_MAX 256u              /* … and of one token */

enum mcp_era { MCP_LEGACY = 1, MCP_MODERN = 2, MCP_BOTH = 3 };

struct mcp;
struct mcp_request;

struct mcp_method {
    const char *name;
    unsigned eras;        /* that know it */
    const char *named_by; /* the parameter that the header Mcp-Name repeats; NULL: none does */
    bool may_ask;         /* of modern clients too */
    bool cached;          /* its result says how long it is good for */
    void (*run)(struct mcp_request *r);
};

/* What a server offers. */
struct mcp_offer {
    const char *name, *title;
    const char *instructions;         /* for the model */
    const char *capabilities;         /* JSON */
    const struct mcp_method *methods; /* ended by a row without name; beyond those of the protocol itself */
    bool needs_box;                   /* it is about the one in the path */
};

/* Headers of a request, where the carrier has such. NULL: it was not there. */
struct mcp_heads {
    const char *version, *method, *name;
};

/* What is known of whoever sends messages. A carrier that keeps a connection keeps one of these with it. */
struct mcp_client {
    struct mcp *mcp;
    const struct mcp_offer *offer;
    struct world *world;
    struct caller who;
    char box[BOX_ID_LEN + 1];
    bool lasts;           /* of one connection: what it sends belongs together, and what it began ends with it */
    bool streams;         /* it takes messages before the answer */
    json_t *capabilities; /* that a legacy client has told; NULL: it has told none */
};

struct mcp_port {
    /* A message on behalf of a request. last: its answer, after which nothing follows; NULL: there is none, because it was cancelled.
     * status is HTTP's. */
    void (*say)(struct mcp_request *r, const json_t *message, unsigned status, bool last);
};

struct mcp_request {
    struct mcp_client *client; /* NULL once it has gone away */
    const struct mcp_port *port;
    void *carrier; /* the port's */
    struct mcp *mcp;
    struct world *world;
    const struct mcp_offer *offer;
    struct caller who;
    char box[BOX_ID_LEN + 1];
    struct rpc_message message;
    const struct mcp_method *method;
    enum mcp_era era;
    const json_t *capabilities; /* of the client; may be NULL */
    const json_t *progress_token;
    const json_t *answers; /* to what was asked, by their keys; NULL: nothing has been */
    json_t *own_answers;   /* … of a legacy client */
    char *state;           /* what mcp_ask was given; NULL: none, or not ours */
    bool answered, gone;
    bool goes_on; /* what was begun is not to be ended when it is left: a legacy client may only have lost its connection */
    bool streams, listed;
    unsigned held;
    struct mcp_request *next, **link;
    struct question {
        char id[40];
        char key[64];
        bool open;
    } questions[MCP_QUESTIONS_MAX];
    struct loop_timer ask_timer;
    /* The method's own. */
    void *own;
    void (*left)(struct mcp_request *r); /* it was cancelled, or nobody waits any more: lets go of own */
};

/* The core's state: one in a process. */
struct mcp {
    struct loop *loop;
    struct mcp_request *requests; /* under way */
    size_t count;
    uint8_t key[32]; /* of sealed states; dies with the process */
};

/* False: there is no randomness to be had. */
bool mcp_init(struct mcp *m, struct loop *loop);

/* One message of a client. It becomes a request, which the carrier holds (mcp_drop) and which may be answered before this returns; or
 * it needs no answer, and NULL comes back. heads is NULL where the carrier has no headers. */
struct mcp_request *mcp_take(struct mcp_client *c, const struct mcp_port *port, void *carrier, const struct mcp_heads *heads, const char *p,
                             size_t n);

/* By the carrier: a message as it is sent, to be freed. One that is too long to send is, if it is the answer, an error that says so, and
 * else NULL, as where memory is short. */
char *mcp_write(const struct mcp_request *r, const json_t *message, bool last, size_t *ret_len);

/* By the carrier: the client of this request is gone; or of all requests of a connection. */
void mcp_leave(struct mcp_request *r);
void mcp_leave_all(struct mcp_client *c);
void mcp_hold(struct mcp_request *r);
void mcp_drop(struct mcp_request *r);

/* --- for methods --- */

/* The answer. Takes over result (an object); NULL stands for memory that is short. */
void mcp_result(struct mcp_request *r, json_t *result);
void mcp_error(struct mcp_request *r, int code, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Something before the answer. Takes over params. */
void mcp_notify(struct mcp_request *r, const char *method, json_t *params);

/* How far it is, if the client wants to hear of it. message may be NULL and is ours. */
void mcp_progress(struct mcp_request *r, uint64_t done, uint64_t total, const char *message);

/* Has the client told that it can do this ("elicitation")? Of a legacy client without a connection nobody knows: then it is tried. */
bool mcp_can(const struct mcp_request *r, const char *capability);

/* Asks the client: questions is {key: {method, params}}, taken over. The method is run again with r->answers and r->state. Of a client
 * that can answer none of them it is an error. */
void mcp_ask(struct mcp_request *r, json_t *questions, const char *state);

/* A name that nobody guesses: prefix and 24 hex digits. False: there is no randomness to be had. */
bool mcp_secret_name(const char *prefix, char *ret, size_t cap);

/* A text parameter, or NULL. */
const char *mcp_param_text(const struct mcp_request *r, const char *key);
