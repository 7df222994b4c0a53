/* SPDX-License-Identifier: Apache-2.0 */
/* The target of an HTTP request: the segments of its path and the pairs of its query, each decoded once.
 *
 * A segment or a value is text without NUL; what its escapes stand for never becomes a separator again. An escape that is none, an
 * empty segment inside, a doubled key and a fragment are errors. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "net/httphead.h"

#define TARGET_SEGMENTS_MAX 12u
#define TARGET_PAIRS_MAX 16u

struct target {
    size_t segments, pairs;
    const char *segment[TARGET_SEGMENTS_MAX];
    struct {
        const char *key, *value;
    } pair[TARGET_PAIRS_MAX];
    char mem[HTTP_TARGET_MAX + 2]; /* what they point into */
};

bool target_parse(const struct http_text *t, struct target *ret);

/* The value of a key in the query, or NULL. */
const char *target_get(const struct target *t, const char *key);
