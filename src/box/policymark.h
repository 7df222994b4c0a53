/* SPDX-License-Identifier: Apache-2.0 */
/* The digest of a box's policy, beside it: a policy with a letter that is not what was written must not hold, even if it can be read.
 *
 * The file has the digests of the last two policies, the newer first: it is written before the policy is, so that whoever is killed in
 * between leaves one that is known. */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "policy/policy.h"

/* dir_fd: the state folder. digest: of the canonical text that is about to be written. durable: it is on the disk before that is. */
int policymark_add(int dir_fd, const char *digest, bool durable, struct pale_err *e) MUST_CHECK;

/* Writes a policy under this name in the state folder, with its digest. It is on the disk when it has the name. */
int policymark_write(int dir_fd, const char *name, const struct policy *p, struct pale_err *e) MUST_CHECK;

/* PALE_CORRUPT if the policy with this digest was not written here. A box without the file is not held to it. */
int policymark_check(const char *state_dir, const char *digest, const char *box, struct pale_err *e) MUST_CHECK;
