/* SPDX-License-Identifier: Apache-2.0 */
/* Hunks, applied: what a file's content becomes.
 *
 * How it works: a hunk's blank and minus lines must stand in the file exactly, behind what the hunk before it has used. One that names its
 * line is looked for there, and then ever further away on both sides; two places as near as each other are an error. One that names
 * none must have a single place, or one behind the line it names as its anchor, whose first place is taken. Pure. */
#pragma once

#include "init/changes.h"

struct hunks_text {
    const char *at;
    size_t len;
};

/* index: memory for HUNKS_INDEX(old->len) numbers; out: for HUNKS_OUT(old->len, length of the patch) bytes. */
#define HUNKS_INDEX(n) ((n) + 2)
#define HUNKS_OUT(n, patch) ((n) + 2 * (patch) + 2)
int hunks_apply(const struct changes *c, const struct change *ch, const struct hunks_text *old, uint32_t *index, char *out, size_t *ret_len,
                struct pale_err *e) MUST_CHECK;
