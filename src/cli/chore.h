/* SPDX-License-Identifier: Apache-2.0 */
/* A chore: something pale-init does in a box itself (init/builtin.h lists what), as a command of the box would.
 *
 * Paths of a box are resolved there and nowhere else. What comes back is hostile. */
#pragma once

#include "box/reach.h"
#include "cli/cli.h"
#include "cli/door.h"
#include "cli/session.h"

struct chore {
    struct door door;
    struct reach reach;
    struct msg_exec exec;
    struct session session; /* its streams may be set between chore_set and chore_run */
    char label[512];
    int signal; /* what ended it, or 0; after chore_run */
};

/* Reaches the box, starting it if needed. */
int chore_open(struct chore *q, struct args *a, const char *box, struct pale_err *e) MUST_CHECK;

/* What to do, and with what: words up to a NULL, which live until the chore is done. */
void chore_set(struct chore *q, const char *const *words);

/* Does it and closes the connection. The chore's own complaint becomes the error. */
int chore_run(struct chore *q, struct pale_err *e) MUST_CHECK;

/* All three at once. */
int chore_do(struct chore *q, struct args *a, const char *box, const char *const *words, struct pale_err *e) MUST_CHECK;

/* Is that a folder of the box, or does it lead to one? */
bool chore_is_folder(struct chore *q, struct args *a, const char *box, const char *path);

/* The last name of a path, or "" if it has none. Valid until the next call. */
const char *chore_last_name(const char *path);
