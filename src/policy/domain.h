/* SPDX-License-Identifier: Apache-2.0 */
/* Host names in egress rules: "x.org", "*.x.org" (anything beneath, never x.org itself) and "*" (any name). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/limits.h"

/* Writes the lower-case form of a name or pattern. Only letters, digits and inner hyphens in labels; no address, no
 * trailing dot, no empty label. With pattern false a star is refused. ret is left alone on failure. */
int domain_parse(const char *s, size_t len, bool pattern, char ret[DOMAIN_NAME_MAX + 1], struct pale_err *e) MUST_CHECK;

/* Does outer match every name that inner (a name or pattern) matches? Both come from domain_parse. Two patterns that do
 * not cover one another in either direction have no name in common. */
bool domain_covers(const char *outer, const char *inner);
