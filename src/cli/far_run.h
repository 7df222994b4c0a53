/* SPDX-License-Identifier: Apache-2.0 */
/* A lease: a box made through a daemon elsewhere for one command, which goes when the command has ended or we have, however that
 * happens. A second process of ours sees to the latter; if that ends too, the daemon removes the box when its time is up. */
#pragma once

#include "cli/door.h"

struct far_lease {
    struct door door;
    int guard_fd; /* closing it sends the guard to remove the box; a byte sends it home */
    bool is_kept; /* the box stays */
};

/* Makes a box by the verb's flags. name NULL: it gets one of its own and a time after which it is removed. */
int far_lease_open(struct far_lease *l, const struct args *a, const char *name, uint64_t timeout_ms, struct pale_err *e) MUST_CHECK;

/* Removes the box, unless it is kept. */
int far_lease_close(struct far_lease *l, struct pale_err *e) MUST_CHECK;
