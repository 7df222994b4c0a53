/* SPDX-License-Identifier: Apache-2.0 */
/* Deeds: what the daemon has pale-steward do, each over a connection of its own. */
#pragma once

#include "fleet/core.h"
#include "fleet/fleet.h"

/* What a new box is made with, besides what the core knows. */
struct order_payload {
    const char *policy, *sets;
    bool start;
};

/* A deed of the core; core_deed_done follows. */
int order_deed(struct fleet *f, const struct core_deed *d, struct pale_err *e) MUST_CHECK;
