/* SPDX-License-Identifier: Apache-2.0 */
/* Two changes of one text made one, line by line.
 *
 * How it works: both are compared with the text they began as. Where only one has changed, it is taken; where both have, and not to the
 * same, or so near that no unchanged line lies between, they are in conflict, and nothing is merged at all. Pure; binary content is always
 * in conflict. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

struct merge3_text {
    const void *at;
    size_t len;
};

/* *ret_clean: they go together, and out has the result. Otherwise out is as before. PALE_LIMIT for texts too long to compare. */
int merge3_run(struct merge3_text base, struct merge3_text ours, struct merge3_text theirs, bool *ret_clean, struct buf *out,
               struct pale_err *e) MUST_CHECK;
