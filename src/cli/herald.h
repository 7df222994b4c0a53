/* SPDX-License-Identifier: Apache-2.0 */
/* Questions of boxes as notifications of the desktop, with buttons that answer them: org.freedesktop.Notifications on the user's bus.
 *
 * How it works: whoever is asked sits at the desktop, so it is the command in his session that speaks to its bus, and no daemon of ours. A
 * button counts only if the one who showed the notification says that it was pressed. Where there is no bus, or nobody on it shows
 * notifications, nothing is shown and nothing is said. */
#pragma once

#include "base/buf.h"
#include "cli/inquiry.h"

#define HERALD_NOTES_MAX 64u

struct herald {
    int fd; /* -1: there is no bus */
    bool greeted;
    uint32_t serial;
    char shower[64]; /* the name on the bus of who shows notifications; "": not known yet */
    struct buf in;
    struct herald_note {
        char question[QUESTION_ID_LEN + 1]; /* "": free */
        uint32_t serial, id;                /* of the request; of the notification, 0: not known yet */
    } note[HERALD_NOTES_MAX];
    void (*pressed)(void *arg, const char *question, const struct inquiry_answer *a);
    void *arg;
};

void herald_init(struct herald *h);
void herald_close(struct herald *h);
#define own_herald CLEANUP(herald_close) struct herald

void herald_open(struct herald *h);
void herald_show(struct herald *h, const struct approval_asked *q);
/* The question is open no longer. */
void herald_withdraw(struct herald *h, const char *question);
/* There is something to read. pressed may be called. */
void herald_hear(struct herald *h);
