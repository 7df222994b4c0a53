/* SPDX-License-Identifier: Apache-2.0 */
/* The bridge between an MCP client on our standard input and output and the daemon, which speaks the protocol.
 *
 * How it works: lines pass in both directions as they are. Each is looked at for its id alone, so that it is known what is under way
 * when the daemon dies under it: then the next daemon is told again how the client introduced itself and what it asked that changes
 * nothing; whatever else was under way is answered with an error that says so. The client need not notice more than that. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

#define BRIDGE_LINE_MAX (4u << 20)
#define BRIDGE_WAITS_MAX 256u       /* requests under way */
#define BRIDGE_ID_SIZE 262u         /* of an id: the daemon takes texts of 256 bytes */
#define BRIDGE_KEPT_MAX (64u << 10) /* bytes of a request that is kept to be asked again */
#define BRIDGE_END_MS 5000          /* for answers that are on their way when the client has said its last */
#define BRIDGE_LOSSES_MAX 10u       /* connections in a row that ended within … */
#define BRIDGE_SHORT_MS 1000        /* … so long; then the daemon is given up */
#define BRIDGE_AGAIN_MS 15000       /* for a daemon that is to come back */

struct bridge {
    int in_fd, out_fd, far_fd;
    struct buf in, far; /* bytes that are no whole line yet */
    struct waiting {
        char *id;    /* without what it may be written in several ways by; NULL: a free place */
        char *shown; /* as it stands in the request */
        char *line;  /* to ask again, once: what ends a second daemon is not for a third; NULL: it cannot be */
        bool hidden; /* the client has had the answer already */
    } waits[BRIDGE_WAITS_MAX];
    int64_t since_ms; /* of the connection */
    unsigned losses;
    char *hello; /* the request by which a client of the legacy era begins */
    /* Connects anew; what came of it already goes to b->far. */
    int (*connect)(struct bridge *b, struct pale_err *e);
    void *arg;
};

void bridge_init(struct bridge *b);
void bridge_done(struct bridge *b);

/* Until the client has said its last, or the daemon stays away. */
int bridge_run(struct bridge *b, struct pale_err *e) MUST_CHECK;
