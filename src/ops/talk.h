/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on a box: finding the one a call means, and asking its keeper.
 *
 * A box that the caller may not see is one that is not there, in text and in time. What a keeper answers is parsed here and by the
 * operation; an error of it ends the call, and so does its end. */
#pragma once

#include "fleet/tether.h"
#include "ops/call.h"
#include "ops/world.h"

#define TALKS_PER_BOX 256u /* under way at once; more are told to come again */

/* The box of {box} in the path. On failure the call is answered and NULL returned. */
const struct core_box *talk_find(struct call *c);

/* May the caller see it at all? */
bool talk_sees(const struct caller *who, const struct core_box *b);

struct talk {
    struct call *call;
    struct tether *link;
    char box[BOX_ID_LEN + 1];
    uint8_t type;
    struct buf request;
    char input[SHA256_HEX]; /* digest of the input that will follow; "": of none */
    bool counted, starts, heard;
    unsigned tries, waits;
    struct loop_timer again;                                   /* to knock once more */
    void (*opened)(struct talk *a);                            /* the request is on its way; may be NULL */
    void (*frame)(struct talk *a, const struct frame *f);      /* but for errors */
    void (*bytes)(struct talk *a, const uint8_t *p, size_t n); /* of talk_open, in place of frame */
    void (*gone)(struct talk *a);                              /* NULL: the call fails */
    void (*room)(struct talk *a);                              /* may be NULL */
    void (*failed)(struct talk *a, const struct pale_err *e);  /* NULL: the call fails with it */
    void (*done)(struct talk *a);                              /* frees what the operation has put around it; may be NULL */
};

/* While one of these functions runs the call stays; but whatever it answers may end it, and then c->state is NULL and the ask gone. */

/* A new one for the call, size bytes with struct talk in front, all zero, or NULL when the call is answered: it is the call's state and
 * freed when the call ends. */
void *talk_new(struct call *c, size_t size);

/* Finds the box, starts it if need be and start is set (else one that is down is PALE_NOT_FOUND's), connects and sends. */
void talk_send(struct talk *a, uint8_t type, bool start);

/* The same without a request: whoever calls speaks to the keeper himself, and what comes from it is handed over unread. */
void talk_open(struct talk *a, bool start);

/* Puts ahead of the first request of a connection for whom it is. input: as talk's. */
bool talk_preface(struct tether *l, const char *caller, const char *input);

/* For c->room: the client takes more, so the keeper is listened to again. */
void talk_room(struct call *c);

/* For room and opened of one whose client gives bytes: more may come; and they come to piece, an empty body too. */
void talk_taken(struct talk *a);
void talk_take(struct talk *a, void (*piece)(struct call *c, const void *p, size_t n, bool last));

/* Closes the link; the call goes on. */
void talk_close(struct talk *a);
