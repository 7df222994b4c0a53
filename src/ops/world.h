/* SPDX-License-Identifier: Apache-2.0 */
/* What operations act on: the daemon's one struct of state. */
#pragma once

#include "base/loop.h"
#include "fleet/fleet.h"
#include "store/registry.h"

struct server;
struct call;
struct mcp;

struct world {
    struct loop loop;
    struct fleet fleet;
    struct registry *registry;
    uint64_t started_unix_ms;
    unsigned port; /* 0: no TCP */
    struct server *server;
    /* Ends every call of a token but this one. Set by who brings calls. */
    void (*cut_token)(struct world *w, const char *token, const struct call *but);
    /* What MCP is brought to: its layer lies above. */
    void (*mcp_post)(struct call *c);
    void (*mcp_lines)(struct call *c);
    struct mcp *mcp;
    /* Leaves a trace of a call that was refused: by whom (a token's handle, or ""), of what, why. May be NULL. */
    void (*refused)(const char *token, const char *operation, const char *reason);
    unsigned builds; /* of images, under way */
    unsigned exports, imports;
    unsigned tenant_imports; /* … of these, for tenants */
    bool ending;             /* clients are cut off because we end, not because they left */
    struct {
        uint64_t requests, refused;
        uint64_t connections; /* open now */
    } counts;
};
