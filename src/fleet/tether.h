/* SPDX-License-Identifier: Apache-2.0 */
/* A tether: one connection of the daemon to a keeper or to a deed, frames both ways, nothing that blocks.
 *
 * What comes over it was made by the other end from bytes of a box: it is parsed before anybody sees it, and one that brings
 * anything else is cut. What is sent and not yet taken is bounded. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/loop.h"
#include "wire/frame.h"

struct tether;

struct tether_use {
    void (*frame)(struct tether *l, const struct frame *f);
    void (*gone)(struct tether *l); /* the other end has left; the link is still to be closed */
    void (*room)(struct tether *l); /* all that was sent has been taken; may be NULL */
    /* In place of frame: bytes as they come, which nobody here reads. */
    void (*bytes)(struct tether *l, const uint8_t *p, size_t n);
};

struct tether {
    struct loop *loop;
    struct loop_source source;
    struct buf in, out;
    const struct tether_use *use;
    void *owner;
    bool paused, busy, dead;
    bool kicked; /* frames wait that came before a pause */
    bool ended;  /* the other end has left, and said so */
    bool shut;   /* nothing more is sent once what waits has gone */
};

/* Connects to a socket of ours. PALE_NOT_FOUND: nobody listens; PALE_BUSY: too many wait there already. */
int tether_open(struct loop *loop, const char *path, const struct tether_use *use, void *owner, struct tether **ret,
                struct pale_err *e) MUST_CHECK;

/* Takes over a connected socket, closed on failure too. */
int tether_take(struct loop *loop, int fd, const struct tether_use *use, void *owner, struct tether **ret, struct pale_err *e) MUST_CHECK;

/* Closes and frees it, from its own callbacks too. NULL is fine. */
void tether_close(struct tether *l);

/* Sends a frame, or puts it ahead of the next that is sent. False if it is cut, or has more under way than it may: then nothing of this was
 * sent. */
bool tether_send(struct tether *l, uint8_t type, const void *p, size_t n);
bool tether_put(struct tether *l, uint8_t type, const void *p, size_t n);

/* The same for bytes that are frames already, or parts of some. */
bool tether_pass(struct tether *l, const void *p, size_t n);

/* What was sent was the last; the other end is told so after it. */
void tether_shut(struct tether *l);
size_t tether_unsent(const struct tether *l);

/* A paused link reads nothing; frames that are here already wait. */
void tether_pause(struct tether *l, bool on);
