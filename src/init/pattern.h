/* SPDX-License-Identifier: Apache-2.0 */
/* Search patterns as models write them, made into regular expressions that the C library takes, and a text without which they cannot
 * match.
 *
 * How it works: a pattern is read once, character by character. What the library does not know is said in its words: \d, \t, classes such
 * as [\w.-], groups that capture nothing, lazy repetitions, braces that repeat nothing. What it would misread is refused with a reason.
 * On the way the longest run of plain characters that every match must have is kept: looking for that first is many times
 * faster than the library. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/limits.h"

struct pattern {
    char regex[6 * PATTERN_BYTES_MAX + 16]; /* extended, as POSIX has it */
    char literal[PATTERN_BYTES_MAX + 1];    /* "": there is none; in small letters if case is ignored */
    size_t literal_len;
    bool plain; /* the literal is all of it */
    bool ignore_case;
};

/* fixed: every character stands for itself. PALE_BAD_INPUT says what cannot be. */
int pattern_read(struct pattern *p, const char *text, bool fixed, bool ignore_case, struct pale_err *e) MUST_CHECK;
