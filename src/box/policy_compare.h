/* SPDX-License-Identifier: Apache-2.0 */
/* Says whether a box that is there is the one that somebody wants. */
#pragma once

#include "box/place.h"
#include "policy/policy.h"

/* 0 if the box has exactly this policy and keeps automatic snapshots exactly if they are wanted; else PALE_EXISTS, with an error that
 * names every difference that fits into it and what to do. wanted has passed intake_check. */
int policy_compare(const struct place *p, const struct policy *wanted, bool no_autosave, struct pale_err *e) MUST_CHECK;
