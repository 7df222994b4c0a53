/* SPDX-License-Identifier: Apache-2.0 */
/* A duty: one operation done for a request, by the rights of whoever made it. Tools are built of these, so what MCP can do is what
 * the table of operations says, and who may is asked there. */
#pragma once

#include "mcp/mcp.h"

struct duty {
    struct mcp_request *r;
    struct call *call; /* NULL: none is under way */
    char box[BOX_ID_LEN + 1], job[24], question[17];
    char key[64];     /* of a command: who leaves it may come back by it; "": none */
    struct buf text;  /* the answer, as far as it fits */
    struct buf line;  /* of a stream: what is no whole line yet */
    bool streamed;    /* the answer is taken line by line */
    const char *body; /* of an operation that takes bytes; it stays as long as the duty */
    size_t body_len, body_at;
    bool wants;
    bool stops;  /* what of an answer does not fit into text is not wanted: it is done then */
    bool enough; /* the rest of the stream is not wanted: it is done */
    /* A line of a streamed answer. It does not let go of the duty. */
    void (*heard)(struct duty *k, const json_t *line);
    /* It is over: e is NULL if it went well, and then answer is what came, or NULL if that was no JSON (text has it). The duty may be
     * run again from here, or be gone afterwards. */
    void (*done)(struct duty *k, const struct pale_err *e, const json_t *answer);
};

/* For a request and its box. most: bytes of an answer that is kept. */
void duty_init(struct duty *k, struct mcp_request *r, size_t most);

/* Has the operation a field of that name? */
bool duty_takes(const char *op, const char *field);

/* Runs the operation with fields from values (an object, taken over). job is that of the path, if it has one. */
void duty_run(struct duty *k, const char *op, uint64_t job, json_t *values);

/* A count in an answer; 0 if there is none. */
uint64_t duty_number(const json_t *answer, const char *key);

/* Leaves what is under way; a command that has a key goes on. */
void duty_leave(struct duty *k);

/* Lets go. goes_on: a command that was begun is not ended. */
void duty_done(struct duty *k, bool goes_on);
