/* SPDX-License-Identifier: Apache-2.0 */
/* What pale-keeper and pale-warden say to each other: whole messages over a socket that keeps them apart. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"

/* Descriptors that pale-warden is born with. */
enum ward_fd {
    WARD_TALK_FD = 3,   /* the keeper */
    WARD_SHARED_FD,     /* struct ward_shared */
    WARD_PROJECT_FD,    /* the project as the host sees it */
    WARD_QUARANTINE_FD, /* where things are taken to */
    WARD_USER_FD,       /* the box's outer user namespace … */
    WARD_MOUNT_FD,      /* … and its mounts */
    WARD_INIT_FD,       /* pidfd of pale-init */
    WARD_FDS,
};

enum ward_type {
    /* from the keeper */
    WARD_STAND = 1, /* the wall stands: lay the guard; answered by READY or ERROR */
    WARD_IDLE,      /* no command runs; number: how many had been started by then */
    WARD_CATCH_UP,  /* deal with all that has happened; answered by CAUGHT_UP with the same number */
    WARD_GO,        /* what TAKE told is in the audit */
    WARD_FINISH,    /* the box is dead: look a last time; answered by DONE */
    /* to the keeper */
    WARD_READY, /* number: names that are guarded */
    WARD_ERROR, /* code and text: the box must not start, or not go on */
    WARD_TAKE,  /* text is about to be taken away, as number; waits for GO */
    WARD_NOTE,  /* code is an enum ward_note */
    WARD_CAUGHT_UP,
    WARD_DONE,
};

enum ward_note {
    WARD_NOTE_FLOOD,  /* more is taken than is told one by one; number: how many since it was last told */
    WARD_NOTE_SLOW,   /* folders cannot be watched any more: the project is looked through every now and then */
    WARD_NOTE_UNHELD, /* text, which the host made, cannot be guarded */
    WARD_NOTE_RELAID, /* the host replaced text; it is guarded again */
};

struct ward_message {
    uint32_t type, code;
    uint64_t number;
    uint32_t kind; /* of what is taken: S_IFMT bits */
    uint32_t text_bytes;
    char text[PATH_BYTES_MAX];
};
#define WARD_HEAD_BYTES offsetof(struct ward_message, text)

/* Written by the keeper before the deed, read by the warden after the event: what was seen while all that were started are known to
 * have ended was not done by the box. */
struct ward_shared {
    uint64_t started;
};
