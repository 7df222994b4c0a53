/* SPDX-License-Identifier: Apache-2.0 */
/* A chore: something pale-init does in a box itself (read, write, list, stat, pack, unpack), as a command of the box would.
 *
 * Paths of a box are resolved there and nowhere else. What comes back is hostile. */
#pragma once

#include "cli/cli.h"
#include "box/reach.h"
#include "cli/session.h"

struct chore {
    struct reach reach;
    struct msg_exec exec;
    struct session session; /* its streams may be set between chore_set and chore_run */
    char label[512];
};

/* Reaches the box, starting it if needed. */
int chore_open(struct chore *q, struct args *a, const char *box, struct pale_err *e) MUST_CHECK;

/* What to do, and to which path; third may be NULL. */
void chore_set(struct chore *q, const char *name, const char *path, const char *third);

/* Does it and closes the connection. The chore's own complaint becomes the error. */
int chore_run(struct chore *q, struct pale_err *e) MUST_CHECK;
