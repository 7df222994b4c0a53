/* SPDX-License-Identifier: Apache-2.0 */
/* What operations act on: the daemon's one struct of state. */
#pragma once

#include "base/loop.h"
#include "fleet/fleet.h"
#include "store/registry.h"

struct world {
    struct loop loop;
    struct fleet fleet;
    struct registry *registry;
    uint64_t started_unix_ms;
    unsigned port; /* 0: no TCP */
    bool ending;   /* clients are cut off because we end, not because they left */
    struct {
        uint64_t requests, refused;
        uint64_t connections; /* open now */
    } counts;
};
