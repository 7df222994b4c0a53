/* SPDX-License-Identifier: Apache-2.0 */
/* Reaching a keeper: over its socket, or by starting one. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "box/place.h"
#include "policy/policy.h"
#include "wire/frame.h"

/* In the state folder of a box that runs: a symlink to the socket of its keeper. */
#define REACH_SOCKET "socket"

struct reach {
    int fd;
    pid_t keeper;            /* of a one-shot box: our child; else 0 */
    char id[BOX_ID_LEN + 1]; /* … and its id */
    pid_t starting;          /* the keeper that has not said yet that it is ready */
    bool waits;              /* … because it has not been let go yet, … */
    bool wants_list;         /* … or has not heard that the list is saved, … */
    bool wants_disk;         /* … or on the disk */
    const char *caller;      /* for whom a keeper is started */
    char owed[BOX_ID_LEN];   /* the id of the box, which goes out ahead of the first request; … */
    bool owes_id;            /* … if it has not yet */
    int home_fd;             /* for its ids: from reach_home, or -1; not ours to close */
    struct buf in;
    size_t taken;        /* bytes of in that were handed out */
    uint8_t first[2048]; /* where in begins: most answers are no longer */
};

void reach_init(struct reach *r);
void reach_close(struct reach *r);
#define own_reach CLEANUP(reach_close) struct reach

/* The keeper of a box that exists; started if there is none and start is set, else PALE_NOT_FOUND. */
int reach_box(struct reach *r, const struct place *p, bool start, struct pale_err *e) MUST_CHECK;

/* The same in two steps, for who starts several at once: a keeper for a box that has none, and its word that the box is ready.
 * home_fd: from reach_home, or -1. */
int reach_start(struct reach *r, const struct place *p, int home_fd, struct pale_err *e) MUST_CHECK;
int reach_started(struct reach *r, const struct place *p, struct pale_err *e) MUST_CHECK;

/* In steps, for who changes a box that still runs: a keeper that gets itself ready, and builds what it can if it is told how the list of
 * layers will look. It touches nothing of the box before it is let go, with the lock that the caller holds on the box and may close then;
 * gives the box to nobody before it has heard that the list is saved and on the disk; and ends if it hears nothing. Who lets it go before
 * the list is saved has told it of a new open layer. */
int reach_start_next(struct reach *r, const struct place *p, int home_fd, struct pale_err *e) MUST_CHECK;
int reach_tell_list(struct reach *r, const void *list, size_t n, struct pale_err *e) MUST_CHECK;
int reach_let_go(struct reach *r, int lock_fd, struct pale_err *e) MUST_CHECK;
int reach_tell_saved(struct reach *r, struct pale_err *e) MUST_CHECK;
int reach_tell_kept(struct reach *r, struct pale_err *e) MUST_CHECK;

/* A home for the ids of many boxes (confine/ids.h): a descriptor, or -1 where boxes need none. */
int reach_home(int *ret_fd, struct pale_err *e) MUST_CHECK;

/* The first answer of a keeper, which may come with the home of its box's ids: else -1. */
int reach_receive_home(struct reach *r, int *ret_fd, struct pale_err *e) MUST_CHECK;

/* Starts another program of ours that tells on its descriptor 3 when it is ready, and goes on without us. */
int reach_program(const char *name, char *const argv[], struct pale_err *e) MUST_CHECK;

/* A keeper for one box and one command. The wall is built while the caller goes on. */
int reach_once(struct reach *r, const struct policy *policy, struct pale_err *e) MUST_CHECK;

/* A request. If the keeper has hung up, what it said before becomes the error. */
int reach_send(struct reach *r, uint8_t type, const void *p, size_t n, struct pale_err *e) MUST_CHECK;

/* Something for a command that runs. It may come too late, when the result is on its way to us: then it is false, and nothing is
 * taken from what there is to read. */
bool reach_tell(struct reach *r, uint8_t type, const void *p, size_t n);

/* A frame that is here already: 1, 0 (none), -1 (the keeper talks nonsense). Valid until the next call. */
int reach_next(struct reach *r, struct frame *ret);

/* Reads more bytes: 1, 0 at the end of the connection, -1 with errno. */
int reach_fill(struct reach *r);

/* The next frame, waiting for it. TELL_ERROR becomes the error it carries. */
int reach_receive(struct reach *r, struct frame *ret, struct pale_err *e) MUST_CHECK;

/* Waits for a one-shot box to be gone. */
void reach_end(struct reach *r);
