/* SPDX-License-Identifier: Apache-2.0 */
/* Where a server's response ends.
 *
 * How it works: the bytes go to the box as they come; nothing in them is judged or changed. They are followed only so that one knows when
 * the response is over: interim responses, then one that counts, with a body by length, in chunks, or up to the end of the connection. A
 * response that is not understood counts as one that ends with the connection, so that no request can follow it: a server that writes
 * badly is heard, once. A head is read when it is whole; until then its bytes stay with the caller. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/chunks.h"

enum httpreply_state {
    HTTPREPLY_NONE, /* no response is awaited */
    HTTPREPLY_HEAD,
    HTTPREPLY_LENGTH,
    HTTPREPLY_CHUNKS,
    HTTPREPLY_TO_END,   /* whatever comes belongs to it */
    HTTPREPLY_SWITCHED, /* the protocol is another from here on */
};

/* All zero at the beginning of a connection. */
struct httpreply {
    enum httpreply_state state;
    bool to_head, may_switch; /* of the request */
    bool is_last;             /* the server closes after it */
    unsigned interim;
    uint64_t left;
    struct chunks chunks;
};

/* A request has been sent: its response is awaited. */
void httpreply_await(struct httpreply *r, bool to_head, bool may_switch);

/* Of the bytes at p the first *ret_pass are the response's. 1: it ends with them, or the protocol changes there. 0: it goes on; what is not
 * passed is to be given again, with more behind it. -1: no response is awaited, and nothing may pass. */
int httpreply_take(struct httpreply *r, const char *p, size_t n, size_t *ret_pass);

/* How many bytes may pass without being looked at; as many as like to where the response goes up to the end. */
uint64_t httpreply_unseen(const struct httpreply *r);

/* So many of them passed. 1 and 0 as above. */
int httpreply_passed(struct httpreply *r, uint64_t n);
