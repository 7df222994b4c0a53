/* SPDX-License-Identifier: Apache-2.0 */
/* A line of the list of a box's snapshots: what people and programs are told of each. */
#pragma once

#include "base/json.h"
#include "box/stack.h"

struct snapline {
    const char *name;
    uint64_t made_ms;
    const char *kind; /* "asked" or "automatic" */
    unsigned layers;
    const char *state; /* "verified", "fresh" or "poisoned", by the worst of its layers */
    bool current;      /* the box stands on it */
};

/* Points into both. */
struct snapline snapline_of(const struct stack *s, const struct stack_snapshot *n);

/* As an object in an open list. */
void snapline_json(const struct snapline *l, struct json *j);
