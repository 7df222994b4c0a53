/* SPDX-License-Identifier: Apache-2.0 */
/* Pretence: what makes a user with one id and no capability look like root to an installer.
 *
 * In a box on an image apt, pip and npm run as uid 0 of a namespace that has no other id. Calls that would give a file away, become
 * another user or make a device are answered with success and do nothing: the file stays whose it was, which is what an installer's
 * result needs to be usable, and on the disk all of it is the user's. Nothing is allowed by this that was not before. */
#pragma once

#include "base/err.h"

/* For the calling process and all it starts; after its own filter, over whose refusals it answers. */
int pretence_load(struct pale_err *e) MUST_CHECK;
