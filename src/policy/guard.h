/* SPDX-License-Identifier: Apache-2.0 */
/* Names the host would run or obey, which a box must not plant in a live project. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "policy/policy.h"

/* The default list; ends with NULL. */
extern const char *const guard_defaults[];

/* A guard name is one component or a few, relative, normal ("x", ".git/hooks"). */
int guard_check(const char *name, struct pale_err *e) MUST_CHECK;

/* Do the components of name stand next to each other, at any depth, in this relative path? Then the path is the guarded
 * thing or lies beneath it. Letters match in either case: some file systems do not tell them apart. */
bool guard_matches(const char *name, const char *path);

/* The name of the list that matches, or NULL. */
const char *guard_hit(const struct policy_strings *guard, const char *path);
