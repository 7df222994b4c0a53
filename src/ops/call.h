/* SPDX-License-Identifier: Apache-2.0 */
/* A call: one operation under way for one caller, and how it is answered.
 *
 * How it works: whoever brings calls (rest, mcp) fills in who, what and the values, and a table of functions by which the operation
 * answers; then op->run is called, which may answer at once or later, from an event. An answer is either a whole (call_json, call_fail)
 * or begun, written piece by piece and ended. A call ends exactly once: by its answer's end or because its client left, when `left` is
 * called, whereupon the operation lets go of what it holds. The memory stays until nobody waits for anything on its behalf
 * (call_hold, call_drop). */
#pragma once

#include <jansson.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/limits.h"
#include "net/target.h"
#include "ops/op.h"

struct world; /* the daemon's state, of the layer above the operations' files: ops/world.h */

enum caller_scope { CALLER_OPERATOR, CALLER_TENANT, CALLER_BOX };

/* Who calls, and what he may. */
struct caller {
    enum caller_scope scope;
    char tenant[64];          /* "": the operator's own boxes */
    char box[BOX_ID_LEN + 1]; /* the only one he sees, of CALLER_BOX, … */
    uint64_t born;            /* … and not a later one of the same name */
    int64_t expires_unix_ms;  /* when he is nobody any more; 0: never */
    uint64_t rights;          /* bits of enum op_right */
    char token[17];           /* its handle; "": none was needed */
};

struct value {
    bool given;
    const char *text;
    uint64_t number; /* also of a bool, and of a time in milliseconds */
    json_t *json;    /* lists, maps, objects */
};

/* Headers that are the protocol's of an operation. */
enum call_head { HEAD_MCP_VERSION, HEAD_MCP_METHOD, HEAD_MCP_NAME, HEAD_COUNT };
#define CALL_HEAD_MAX 1024u

struct call_port {
    /* All of it at once; type NULL: there is no body. */
    void (*whole)(struct call *c, unsigned status, const char *type, const void *p, size_t n);
    void (*begin)(struct call *c, unsigned status, const char *type, const char *headers);
    /* False: it is more than the client takes just now; `room` is called when it has. What was given is kept all the same. */
    bool (*write)(struct call *c, const void *p, size_t n);
    void (*end)(struct call *c, bool whole);
    void (*fail)(struct call *c, const struct pale_err *e);
    /* Pieces of an INPUT_BYTES body, or of what comes over an OUTPUT_WIRE, come while on. */
    void (*want)(struct call *c, bool on);
    /* A message of an OUTPUT_SOCKET; as write. */
    bool (*message)(struct call *c, bool text, const void *p, size_t n);
    void (*hang_up)(struct call *c, unsigned status, const char *reason);
};

struct call {
    struct world *world;
    const struct op *op;
    struct caller who;
    struct target target; /* its segments are the parameters' */
    struct value values[OP_FIELDS_MAX];
    json_t *body;
    char key[129];     /* Idempotency-Key; "" */
    bool wants_events; /* rather than lines, if it is streamed */
    bool wants_stream;
    bool comes_back;                /* whoever asks shows a part of what a command prints, and asks for the rest of it later */
    char range[80], last_event[64]; /* headers; "" */
    char accept[256];               /* headers of the answer that opens a socket */
    char *head[HEAD_COUNT];         /* NULL: it was not there */
    const char *message;            /* of INPUT_MESSAGE, while op->run runs */
    size_t message_len;
    const struct call_port *port;
    void *bringer;                                          /* of the port */
    bool bytes_done;                                        /* an INPUT_BYTES body is empty, or all of it has been given */
    unsigned status;                                        /* of the answer, in place of its operation's or its error's; 0: those */
    char refusal_more[64];                                  /* headers of a refusal; "" */
    enum { TRACE_DENIED, TRACE_ALWAYS, TRACE_NEVER } trace; /* which failure is a refusal that the operator hears of */
    bool answered, gone;
    unsigned held;
    /* The operation's own. */
    void *state;
    void (*left)(struct call *c); /* frees state */
    void (*room)(struct call *c);
    void (*piece)(struct call *c, const void *p, size_t n, bool last);
    void (*heard)(struct call *c, bool text, const uint8_t *p, size_t n);
};

/* May he do this at all? Which boxes he sees is another question (ops/talk.h). */
bool call_may(const struct caller *who, const struct op *o);

/* Does he have a right that its row does not say? */
bool call_holds(const struct caller *who, enum op_right right);

/* The value of a field of the call's operation by its name. */
const struct value *call_value(const struct call *c, const char *name);
const char *call_text(const struct call *c, const char *name, const char *otherwise);
uint64_t call_number(const struct call *c, const char *name, uint64_t otherwise);

/* The segment of the path that stands where op->path has {name}. */
const char *call_param(const struct call *c, const char *name);

/* Who calls, as audit records have it: the handle of his token, or "operator". */
const char *call_caller(const struct call *c);

/* Whole answers. call_json takes text that is JSON; call_answer says its status itself, and without a type has no body. */
void call_answer(struct call *c, unsigned status, const char *type, const void *p, size_t n);
void call_json(struct call *c, struct buf *text);
void call_text_answer(struct call *c, const char *type, const struct buf *text);
void call_nothing(struct call *c);
void call_fail(struct call *c, const struct pale_err *e);
void call_refuse(struct call *c, enum pale_code code, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Answers in pieces. */
void call_begin(struct call *c, const char *type, const char *headers);
bool call_write(struct call *c, const void *p, size_t n);
void call_end(struct call *c, bool whole);

/* Tells the operator of a failure that is a refusal: denied, or what c->trace says. For who brings calls. */
void call_trace(const struct call *c, bool denied, const struct pale_err *e);

/* Ends a socket. */
void call_hang_up(struct call *c, unsigned status, const char *reason);

/* Made by a bringer; freed by the last drop. */
struct call *call_new(struct world *w);
void call_hold(struct call *c);
void call_drop(struct call *c);
/* By the bringer: its client is no longer there. */
void call_leave(struct call *c);
