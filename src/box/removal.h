/* SPDX-License-Identifier: Apache-2.0 */
/* Removing what a box wrote. */
#pragma once

#include "base/err.h"

/* Removes a tree below dirfd, as fd_remove_tree does: no link is followed, and it is no error if there is none. A process in seclusion
 * goes through it, which can reach nothing but what is to go. What a box with a range of ids made may belong to one of those, out of its
 * user's reach: then it is done by somebody who has them all. */
int removal_tree(int dirfd, const char *name, struct pale_err *e) MUST_CHECK;
