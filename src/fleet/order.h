/* SPDX-License-Identifier: Apache-2.0 */
/* Deeds: what the daemon has pale-steward do, each over a connection of its own. */
#pragma once

#include "box/stack.h"
#include "fleet/core.h"
#include "fleet/fleet.h"

/* What a new box is made with, of CORE_MAKE, besides what the core knows. */
struct order_payload {
    const char *policy, *sets;
    bool start, by_hand;
};

/* What is done to a box's layers, of CORE_CHANGE; names are "" where there is none. */
struct order_change {
    enum deed_kind kind;
    char snapshot[SNAPSHOT_NAME_MAX + 1], name[BOX_NAME_MAX + 1];
    unsigned count;
    bool force, again;
    const char *paths; /* DEED_DISCARD: a list in JSON; NULL: all */
};

/* A deed of the core; core_deed_done follows. */
int order_deed(struct fleet *f, const struct core_deed *d, const char *caller, struct pale_err *e) MUST_CHECK;
