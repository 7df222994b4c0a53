/* SPDX-License-Identifier: Apache-2.0 */
/* Questions of a box that wait for the operator, as its keeper tells of them. */
#pragma once

#include "box/approval.h"
#include "fleet/fleet.h"

struct pending {
    struct pending *next; /* in the order in which they were asked */
    struct approval_asked q;
};

/* What a keeper says of one: it is remembered or forgotten, and whoever listens to events hears of it. False if it cannot be read. */
bool pending_take(struct lookout *w, const struct frame *f);
void pending_forget(struct lookout *w);
