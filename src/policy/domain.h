/* SPDX-License-Identifier: Apache-2.0 */
/* Host names in egress rules: "x.org", "*.x.org" (anything beneath, never x.org itself) and "*" (any name). What a name is,
 * and what covers what, net/hostname.h says. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/limits.h"

/* Writes the canonical form of a name or pattern, which may be one label. A dot at the end is refused, and with pattern false a star. ret
 * is left alone on failure. */
int domain_parse(const char *s, size_t len, bool pattern, char ret[DOMAIN_NAME_MAX + 1], struct pale_err *e) MUST_CHECK;
