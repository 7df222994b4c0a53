/* SPDX-License-Identifier: Apache-2.0 */
/* What operations act on: the daemon's one struct of state. */
#pragma once

#include "base/loop.h"
#include "fleet/fleet.h"
#include "store/registry.h"

struct server;
struct call;

struct world {
    struct loop loop;
    struct fleet fleet;
    struct registry *registry;
    uint64_t started_unix_ms;
    unsigned port; /* 0: no TCP */
    struct server *server;
    /* Ends every call of a token but this one. Set by who brings calls. */
    void (*cut_token)(struct world *w, const char *token, const struct call *but);
    bool ending; /* clients are cut off because we end, not because they left */
    struct {
        uint64_t requests, refused;
        uint64_t connections; /* open now */
    } counts;
};
