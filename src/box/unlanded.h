/* SPDX-License-Identifier: Apache-2.0 */
/* Says whether a box whose project is for review holds work that exists nowhere else. Blocks. */
#pragma once

#include "box/place.h"

/* 0 if there is none, or the box has no project for review; else PALE_CONFLICT, with an error that says how many files there are and what
 * to do. What cannot be compared counts as work: nothing is lost because it could not be looked at. */
int unlanded_refuse(const struct place *p, struct pale_err *e) MUST_CHECK;
