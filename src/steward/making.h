/* SPDX-License-Identifier: Apache-2.0 */
/* A deed by which something new is made, an image or a box, by a command that is given what to make it of: tells how far it is, in the form
 * that the client wants, and in the end what was made or why not. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "steward/command.h"
#include "wire/message.h"

struct making {
    const struct msg_deed *order; /* until: the form */
    int fd;                       /* to paled */
    const char *during, *after;   /* the events: that it goes on, and that it is done */
    bool takes;
};

/* Tells in parts; told gets the answer if it was made, and stays empty if the parts have told why not. What an interrupted command could
 * not take away is swept. argv: of a command with --json. */
int making_run(const struct making *m, char *const argv[], struct buf *told, struct pale_err *e) MUST_CHECK;
