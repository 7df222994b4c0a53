/* SPDX-License-Identifier: Apache-2.0 */
/* Names of hosts: the one canonical form, which is what rules are matched against, what is looked up and what is dialled.
 *
 * Labels of letters, digits and inner hyphens, in lower case, without the last dot. A name in another script comes as its xn-- labels and
 * stays as it is: nothing is converted, so two spellings never become one name. An underscore is refused: it stands in names of records,
 * never in one of a host. A name whose last label is a number is refused because some readers take it for an address. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/limits.h"

struct hostname {
    size_t len;
    char text[DOMAIN_NAME_MAX + 1];
};

/* What keeps bytes from being a name. */
enum hostname_trouble {
    HOSTNAME_GOOD,
    HOSTNAME_LENGTH, /* empty, or too long */
    HOSTNAME_BYTE,   /* one that is in no name: NUL, blank, '@', '%', ':', '_', anything beyond ASCII … */
    HOSTNAME_LABEL,  /* one that is empty or too long */
    HOSTNAME_HYPHEN, /* at an end of a label */
    HOSTNAME_NUMBER, /* an address to some readers */
    HOSTNAME_SINGLE, /* one label, where a resolver may add others to it */
    HOSTNAME_TROUBLES,
};

/* The canonical form of a name. single: one label will do ("localhost"). ret is left alone unless the name is good. */
enum hostname_trouble hostname_canon(const char *p, size_t n, bool single, struct hostname *ret);

/* The same for a pattern: a name, "*.x.org" (everything beneath x.org at any depth, never x.org itself) or "*" (every name). With single,
 * the name after the star may be one label. */
enum hostname_trouble hostname_pattern(const char *p, size_t n, bool single, struct hostname *ret);

/* Does outer match the name inner, or if inner is a pattern, every name that it matches? Both are canonical. Two patterns that do not
 * cover one another in either direction have no name in common. */
bool hostname_covers(const char *outer, const char *inner);

/* A phrase that goes on from the name: "is …, do …". */
const char *hostname_trouble_text(enum hostname_trouble t);
