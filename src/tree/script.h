/* SPDX-License-Identifier: Apache-2.0 */
/* Which lines of a text must go and which must come to make it another: the edit script of two byte strings.
 *
 * How it works: pure. What both have in common at their start and end is cut off, equal lines get equal numbers (by sorting, as a hash that
 * hostile text could defeat has no place here), lines that the other side does not have are changed at once, and the rest goes through
 * Myers' comparison in linear space, without recursion. Its steps are bounded; where they run out, what was not compared yet counts as
 * changed altogether: coarse, and still right. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/own.h"

struct script_side {
    const uint8_t *bytes; /* the caller's, and must outlive the script */
    size_t len;
    uint32_t count;   /* lines; the last may have no newline */
    uint32_t *start;  /* count + 1 offsets */
    uint8_t *changed; /* 1 for each line that the other side does not have */
};

struct script {
    struct script_side was, is;
    bool coarse; /* the steps ran out */
};

/* A run of lines that changed: [was_from, was_to) became [is_from, is_to), one of which may be empty. */
struct script_hunk {
    uint32_t was_from, was_to, is_from, is_to;
};

/* PALE_LIMIT if a text has more than TEXT_BYTES_MAX bytes or TEXT_LINES_MAX lines. */
int script_init(struct script *s, const void *was, size_t was_len, const void *is, size_t is_len, struct pale_err *e) MUST_CHECK;
void script_done(struct script *s);
#define own_script CLEANUP(script_done) struct script

/* The next run behind h, which is zero at first; false if there is none. */
bool script_next(const struct script *s, struct script_hunk *h);

/* How many lines go and come. */
void script_count(const struct script *s, uint32_t *ret_removed, uint32_t *ret_added);

/* Not text, as git sees it: a NUL in the first 8000 bytes. */
bool script_is_binary(const void *p, size_t n);

/* The bytes of the lines [from, to). */
const uint8_t *script_lines(const struct script_side *side, uint32_t from, uint32_t to, size_t *ret_len);
