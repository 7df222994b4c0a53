/* SPDX-License-Identifier: Apache-2.0 */
/* Where the claimed folders of a living keeper are now: it hands out its descriptors to who asks, over a socket beside its claim.
 *
 * A path in a claim may lead elsewhere since the folder, or one above it, was moved; what the keeper holds open is the folder itself. The
 * socket stands in the runtime folder, which is its user's alone. */
#pragma once

#include "base/err.h"
#include "box/ancestors.h"

/* Opens the socket of a keeper in the folder dir; *ret_fd is ready for claimplaces_answer when it is readable. */
int claimplaces_listen(int dir, const char *id, int *ret_fd, struct pale_err *e) MUST_CHECK;

/* Answers all that ask, without waiting. */
void claimplaces_answer(int fd, const struct ancestors *s);

/* Asks the keeper of that box: adds its claimed folders and those that hold them to the set, but not those that were deleted. */
int claimplaces_ask(int dir, const char *id, struct ancestors *ret, struct pale_err *e) MUST_CHECK;

/* Removes the socket of a keeper that is gone. */
void claimplaces_sweep(int dir, const char *id);
