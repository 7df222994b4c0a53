/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns for paths: * ? [a-z] within one name, ** for any number of folders, {a,b} for either.
 *
 * How it works: braces are spread out first, so that a pattern is some alternatives, each of them a list of names. A walk through a tree
 * keeps, for each folder, which parts of the pattern the next name may match: a set of places, one bit each. So a name is looked at
 * once whatever the pattern is, and a folder in which nothing can match is known before it is opened. Pure; nothing is allocated. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/limits.h"

#define WILDCARD_ALTERNATIVES 64
#define WILDCARD_NAMES 30 /* and the places before, between and behind them are bits of 32 */

struct wildcard {
    size_t count;
    struct wildcard_row {
        size_t names;
        uint32_t deep; /* bits of those that are ** */
        const char *name[WILDCARD_NAMES];
    } row[WILDCARD_ALTERNATIVES];
    size_t used;
    char text[32768];
};

struct wildcard_state {
    uint32_t at[WILDCARD_ALTERNATIVES];
};

/* With anywhere, a pattern of one name matches at any depth. The pattern is relative; PALE_BAD_INPUT says what it may not have. */
int wildcard_parse(struct wildcard *w, const char *pattern, bool anywhere, struct pale_err *e) MUST_CHECK;

/* Cuts the leading names without wildcards, all but the last, off a pattern: they are a folder. Returns the rest. */
const char *wildcard_split(const char *pattern, char *ret_folder, size_t cap);

void wildcard_begin(const struct wildcard *w, struct wildcard_state *ret);

/* What the next name leads to. With dotted, only parts of the pattern count that begin with a dot themselves. */
void wildcard_step(const struct wildcard *w, const struct wildcard_state *from, const char *name, bool dotted, struct wildcard_state *ret);

/* Is what was stepped through a match? Can something below it be one? */
bool wildcard_is_match(const struct wildcard *w, const struct wildcard_state *s);
bool wildcard_goes_on(const struct wildcard *w, const struct wildcard_state *s);

/* One name against one part of a pattern. */
bool wildcard_name_fits(const char *part, const char *name);
