/* SPDX-License-Identifier: Apache-2.0 */
/* Rules for environment variables in a policy. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "policy/policy.h"

/* Is this a variable name ([A-Za-z_][A-Za-z0-9_]*, of bounded length)? */
bool env_is_name(const char *s, size_t len);

/* Does the policy set this variable itself? */
bool env_is_set(const struct policy *p, const char *name, size_t len);

/* The env.pass item that lets this host variable in, or NULL. *ret_withheld is an item that would, were it not that the name
 * looks like a secret; NULL if there is none. Does not look at env.set. */
const char *env_pass_rule(const struct policy *p, const char *name, const char **ret_withheld);
