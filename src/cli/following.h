/* SPDX-License-Identifier: Apache-2.0 */
/* Something that a daemon elsewhere makes while we follow it: it tells how far it is, an event a line, and the last one what was made. */
#pragma once

#include "base/buf.h"
#include "base/jsonread.h"
#include "cli/cli.h"
#include "cli/remote.h"

struct following {
    const struct args *args;
    const char *last;                                            /* the event that ends it */
    int (*show)(const struct args *a, const struct jsonread *v); /* shows what was made; the exit status */
    const char *missing;                                         /* the error if that event never comes */
    int status;                                                  /* of show */
    /* Its own. */
    struct buf line;
    bool is_over;
};

/* Notes on the way are shown, but with --json, unless --progress. A failure that is told is the error. */
int following_run(struct following *f, struct remote *r, const struct remote_order *o, struct pale_err *e) MUST_CHECK;
