/* SPDX-License-Identifier: Apache-2.0 */
/* Which operation an input means: a number made of its name, or the next above, so that inputs in git mean the same when the table has
 * grown. */
#pragma once

#include <assert.h>

#include "input.h"
#include "ops/op.h"

UNSEEN static inline uint16_t op_number(const char *name)
{
    uint32_t h = 2166136261u;
    for (; *name; name++)
        h = (h ^ (uint8_t)*name) * 16777619u;
    return (uint16_t)(h ^ h >> 16);
}

UNSEEN static inline const struct op *op_chosen(struct input *in)
{
    uint16_t n = (uint16_t)input_number(in, 2), least = UINT16_MAX;
    const struct op *best = op_table;
    for (const struct op *o = op_table; o->name; o++) {
        uint16_t away = (uint16_t)(op_number(o->name) - n);
        if (away < least) {
            least = away;
            best = o;
        }
    }
    return best;
}
