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

/* What decides about a variable of the host. Does not look at env.set. */
struct env_rule {
    const char *key, *item;  /* the line that lets it in; NULL: none */
    const char *held_by_key; /* the line that would, were it not that it looks like a secret; NULL: none */
    const char *held_by;
};

/* value: NULL if it is not known; then only the name is judged. */
struct env_rule env_rule_for(const struct policy *p, const char *name, const char *value);
