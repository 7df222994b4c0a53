/* SPDX-License-Identifier: Apache-2.0 */
/* One connection of plain HTTP/1 through a gateway: whose turn it is, and how far its message goes.
 *
 * How it works: requests come from a box and are hostile; each is read, judged by the caller and written anew (httprequest), its body is
 * passed by count or chunk by chunk in a frame of ours. The next request is looked at when the response before it has ended, never
 * earlier: pipelined requests wait in the caller's buffer. So every refusal, "100 Continue" and change of rules has a place where it
 * belongs, and the server has no request of which it does not know the end.
 *
 * Responses pass as they are. A server that misleads us about where its response ends misleads us about its own connection, which no other
 * box and no other server shares; the worst it gets is a request that was judged all the same. What the order protects is the other
 * direction: servers have been seen that answer before they have read a body, or forget that there is one, and then take it for a
 * request that nobody judged. Therefore a request with a body is the last on its connection, and says so; a response that is complete
 * before the body is ends the connection; and a response that nobody awaits (-1) means that such a request has been answered: the
 * caller cuts both sides and tells the operator. Only a 101 to a request that asked for it opens the connection for other bytes.
 *
 * The caller calls, from the client: ask, then (if it may pass) forward, then body until it ends; from the server: answer. When
 * httpflow_is_over it passes on what it still has and closes. While a response goes up to the end of its connection (HTTPREPLY_TO_END) no
 * request is due any more: a caller that has bytes of one and hears nothing from the server closes too. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/chunks.h"
#include "net/httpreply.h"
#include "net/httprequest.h"
#include "net/pieces.h"

enum httpflow_state {
    HTTPFLOW_ASK,  /* a request may come */
    HTTPFLOW_BODY, /* its body does */
    HTTPFLOW_WAIT, /* the response is under way */
    HTTPFLOW_OVER, /* nothing more goes to the server */
    HTTPFLOW_OPEN, /* the protocol is another: everything passes, both ways */
};

/* All zero at the beginning of a connection. */
struct httpflow {
    enum httpflow_state state;
    enum http_body body;
    uint64_t left;
    struct chunks chunks;
    bool is_last;
    struct httpreply reply;
};

/* The next request, if one is due: 1, and *ret_used bytes are its head; the caller judges it. 0: it is not all here, or its time has not
 * come. -1: it cannot pass, ret->wrong says why; the flow is over. HTTPREQUEST_OVER needs no answer: the client sees the connection end,
 * and asks again on another. */
int httpflow_ask(struct httpflow *f, const char *p, size_t n, struct httprequest *ret, size_t *ret_used);

/* The request may pass: writes its head for the server, as httprequest_write does, HTTPREQUEST_BYTES_MAX at most. 0: it cannot be. */
size_t httpflow_forward(struct httpflow *f, const struct httprequest *r, const struct http_text *name, char *ret, size_t cap);

/* Passes what it can of the request's body. 1: it has ended. 0: it goes on, with more bytes or more room. -1: it is not well formed; the
 * flow is over. Chunks need room for HTTPFLOW_CHUNK_ROOM bytes beside their data. */
#define HTTPFLOW_CHUNK_ROOM (CHUNKS_HEAD_MAX + 7u)
int httpflow_body(struct httpflow *f, struct pieces *p);

/* How many bytes of the body may pass without being looked at, and that they did. */
uint64_t httpflow_unseen(const struct httpflow *f);
void httpflow_passed(struct httpflow *f, uint64_t n);

/* Of what came from the server *ret_pass bytes go to the client. 1: the response has ended with them. 0: it goes on. -1: nobody awaits
 * one; the flow is over. Bytes that may pass unseen are told by httpreply_unseen. */
int httpflow_answer(struct httpflow *f, const char *p, size_t n, size_t *ret_pass);

/* So many bytes of the response passed unseen. 1 and 0 as above. */
int httpflow_answered(struct httpflow *f, uint64_t n);

/* Has the last response ended, or something gone wrong? */
bool httpflow_is_over(const struct httpflow *f);
