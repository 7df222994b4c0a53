/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon in a vice: connections in memory, a loop that is turned by hand, a clock that is set, a disk with a few boxes on it, and
 * who stands at the other ends: clients, keepers, the steward. */
#pragma once

#include "input.h"
#include "mcp/http.h"
#include "mcp/linewise.h"
#include "mcp/toolbox.h"
#include "net/chunks.h"
#include "ops/talk.h"
#include "rest/conn.h"
#include "wire/message.h"

#define RIG_CONNS 48
#define RIG_CLIENTS 3
#define RIG_BOXES 8
#define RIG_PORT 8080u
#define RIG_UNIX_MS 1767225600000 /* of the clock's zero */
#define RIG_SAVE_AFTER_MS 600000  /* an idle box is kept as it is */

enum rig_kind { RIG_FREE, RIG_CLIENT, RIG_KEEPER, RIG_DEED };

/* What a client has got, as it is understood so far. */
struct rig_answers {
    enum { ANSWER_HEAD, ANSWER_BODY, ANSWER_SOCKET, ANSWER_WIRE, ANSWER_OVER } state;
    size_t count; /* final heads */
    enum http_body body;
    uint64_t left;
    struct chunks chunks;
    unsigned status;
    bool closes, slow; /* it says that it will close; the client did not always read */
    char type[80];
    struct buf text; /* of a body */
};

/* What a client has sent, likewise. */
struct rig_requests {
    struct buf bytes;
    size_t heads;
    uint64_t bare;       /* a bit for each of the last 64: it was HEAD */
    enum http_body body; /* of the last one, while it goes on */
    uint64_t left;
    struct chunks chunks;
    bool lost; /* what follows cannot be told */
};

struct rig_conn {
    enum rig_kind kind;
    bool held;       /* the daemon has it open */
    bool gone, shut; /* its peer has closed, or sends no more */
    bool finished;   /* the daemon sends no more */
    bool local, waits;
    size_t room;   /* bytes the peer takes; SIZE_MAX: it reads */
    size_t refill; /* … and that many more as soon as it was found full, once */
    size_t split;  /* a read gives no more; 0: all */
    struct buf in, out;
    struct rig_answers answers; /* of a client */
    struct rig_requests requests;
    int box;                                                               /* of a keeper */
    uint8_t asked;                                                         /* the first frame's type */
    bool greeted, prefaced, last, begun, started, input_ended, input_told; /* it lasts; what was said of it and of its input */
    bool wild;            /* it has said what no keeper says: what it hears is its own fault */
    struct msg_deed deed; /* of the steward; its texts are in deed_mem */
    char deed_mem[4][BOX_NAME_MAX + 1];
};

struct rig_box {
    bool there, runs;
    bool refuses; /* its keeper has bound its socket and does not listen */
    bool project;
    char tenant[BOX_NAME_MAX + 1], name[BOX_NAME_MAX + 1], id[BOX_ID_LEN + 1];
    uint64_t born;
};

struct rig {
    struct rig_conn conns[RIG_CONNS];
    struct rig_box boxes[RIG_BOXES];
    struct world world;
    struct server server;
    struct mcp mcp;
    bool watch_by_hand, deeds_by_hand; /* keepers say how they stand, and the steward does what he is told, only when the input says so */
    uint64_t made;                     /* boxes ever, and what chance has given */
    int64_t now_ms;
    size_t calls; /* that are there */
};
extern struct rig rig;

/* A new daemon, and its end: clients leave, then everybody else, and nothing may be left. */
void rig_begin(void);
void rig_end(void);

/* Turns the loop until it rests, and looks at everything. */
void rig_settle(void);
void rig_pass(int64_t ms);

/* What comes to the daemon. */
void rig_push(struct rig_conn *c, const void *p, size_t n);
void rig_frame(struct rig_conn *c, uint8_t type, const void *p, size_t n);
struct rig_conn *rig_client(bool local, bool foreign);
struct rig_conn *rig_nth(enum rig_kind kind, unsigned n);        /* NULL: there is none */
void rig_happen(uint32_t mask, bool in_boxes, const char *name); /* inotify's */

/* rest_world.c: boxes, their keepers, the steward. */
void world_fill(void);
void world_heard(struct rig_conn *c, const struct frame *f);
void rig_tell_info(struct rig_conn *c, const char *state, uint64_t jobs);
void rig_kill_keeper(int box);
void rig_do_deed(struct rig_conn *c);
void rig_answer_deed(struct rig_conn *c, uint64_t code, const char *text, const char *id);

/* rest_peer.c: what a client got, what it sent, and whether they fit. */
void peer_got(struct rig_conn *c);
void peer_sent(struct rig_conn *c, const void *p, size_t n);
void peer_closed(struct rig_conn *c); /* by the daemon */
void peer_check(const struct rig_conn *c, const struct conn *d);

/* rest_store.c: a registry with tokens, the same for every input. */
struct registry *store_fresh(int64_t now_unix_ms);
