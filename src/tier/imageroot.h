/* SPDX-License-Identifier: Apache-2.0 */
/* The root of a box that has an image: all of it the box's own to change, in its layers. */
#pragma once

#include "base/err.h"
#include "tier/root.h"

#define IMAGEROOT_EMPTY "/dev/.empty" /* an empty folder, to cover others with */

/* Builds it. porch is a tmpfs that is attached nowhere yet, on which things are put together and which nobody sees afterwards;
 * joined[PART_ROOT] is the root to enter. */
int imageroot_build(const struct wall_plan *plan, struct root_sources *s, int porch, int joined[PART_COUNT], struct pale_err *e) MUST_CHECK;
