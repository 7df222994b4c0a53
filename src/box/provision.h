/* SPDX-License-Identifier: Apache-2.0 */
/* Provision: what root can set up once so that a user's boxes get all they can (a range of ids, control groups of their own), and
 * take back again. */
#pragma once

#include "base/err.h"

/* Told for each thing that was done, or was right already. */
typedef void provision_say(void *arg, const char *line);

/* Sets up what is missing for the user (a name or a number). What was done before an error stays, is in the ledger, and can be
 * undone. */
int provision_fix(const char *user, provision_say *say, void *arg, struct pale_err *e) MUST_CHECK;

/* Takes back, latest first, what the ledger holds for the user, or all of it (NULL). A step that cannot be taken back stays in
 * the ledger and stops the work. */
int provision_undo(const char *user, provision_say *say, void *arg, struct pale_err *e) MUST_CHECK;
