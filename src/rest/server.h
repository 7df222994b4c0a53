/* SPDX-License-Identifier: Apache-2.0 */
/* Listeners: connections are let in, up to a bound, and all of them ended. */
#pragma once

#include <stddef.h>

#include "base/err.h"
#include "base/loop.h"

#define REST_CONNS_MAX 2048u
#define REST_FDS_ELSE 64u  /* descriptors for what is no connection */
#define REST_AGAIN_MS 100  /* without a descriptor to be had, until the next try */
#define REST_DRAIN_MS 4000 /* for the last answers; less than the steward gives us */

struct conn;
struct world;

struct server {
    struct loop *loop;
    struct world *world;
    struct loop_source local, tcp; /* listeners; fd -1: none */
    unsigned port;                 /* of tcp */
    struct loop_timer again, last; /* to listen again; to end whoever is still there */
    struct conn *conns;
    size_t unsent;      /* bytes that wait for clients */
    size_t count, most; /* an eighth of them for the unix socket alone */
    bool full;          /* connections wait to be let in until one leaves */
    bool draining;      /* no new requests; the loop ends when the last answer is out */
};

int server_open(struct server *s, int local_fd, int tcp_fd, struct pale_err *e) MUST_CHECK;
void server_close(struct server *s);

/* Ends once what is under way is answered, within REST_DRAIN_MS. What has no end of its own, as events and terminals, is cut at once:
 * who listens comes back. */
void server_drain(struct server *s);

/* There is one connection less. */
void server_left(struct server *s);
