/* SPDX-License-Identifier: Apache-2.0 */
/* One message of JSON-RPC 2.0 as MCP has it: the one reader, and the one writer of each kind.
 *
 * How it works: the bytes are a stranger's. A message is one JSON object with no key twice, no value nested deeper than
 * RPC_DEPTH_MAX and no more than RPC_VALUES_MAX of them; an id is a text or a whole number, params are an object. What else stands in a
 * message is not looked at, as the standard has it. The reader is pure. */
#pragma once

#include <stdbool.h>

#include <jansson.h>

#include "base/err.h"

#define RPC_DEPTH_MAX 32
#define RPC_VALUES_MAX 8192u /* of one message: a command has up to 4096 words. In memory a value is fifty times what it is in a text */
#define RPC_ID_MAX 256u      /* bytes of an id that is a text */
#define RPC_METHOD_MAX 128u  /* bytes of a method's name */

enum {
    RPC_BAD_JSON = -32700,
    RPC_BAD_MESSAGE = -32600,
    RPC_NO_METHOD = -32601,
    RPC_BAD_PARAMS = -32602,
    RPC_INTERNAL = -32603,
    RPC_HEADER_MISMATCH = -32020,
    RPC_NEEDS_CAPABILITY = -32021,
    RPC_BAD_VERSION = -32022,
};

enum rpc_kind { RPC_REQUEST, RPC_NOTIFICATION, RPC_RESPONSE };

struct rpc_message {
    enum rpc_kind kind;
    json_t *whole; /* owns all below */
    json_t *id;    /* NULL: of a notification, or unknown */
    const char *method;
    json_t *params;         /* NULL: none */
    json_t *result, *error; /* of a response: one of the two */
};

/* 0, or the code of an error with a text for people; then an id that could be read is there all the same. Whatever comes back, the
 * message is to be given to rpc_done. */
int rpc_parse(const char *p, size_t n, struct rpc_message *ret, const char **ret_why) MUST_CHECK;
void rpc_done(struct rpc_message *m);

/* A text of at most RPC_ID_MAX bytes, or a whole number? */
bool rpc_is_id(const json_t *v);

/* The same id? */
bool rpc_same_id(const json_t *a, const json_t *b);

/* Messages to send. Each takes over the last of its arguments; NULL when memory is short. */
json_t *rpc_answer(const json_t *id, json_t *result);
json_t *rpc_failure(const json_t *id, int code, const char *text, json_t *data);
json_t *rpc_notice(const char *method, json_t *params);
json_t *rpc_question(const char *id, const char *method, json_t *params);

/* A text of foreign bytes: what is not UTF-8 is replaced. */
json_t *rpc_text(const void *p, size_t n);
