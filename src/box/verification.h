/* SPDX-License-Identifier: Apache-2.0 */
/* Are a box's closed layers still what they were when their digests were made? Disks fail, and people write where they should not. */
#pragma once

#include "base/err.h"
#include "box/place.h"
#include "box/stack.h"

struct verification {
    /* Told of each layer that is not; s is the list of layers as it was read. */
    void (*tell)(void *arg, const struct stack *s, int layer);
    void *arg;
    unsigned good, bad, unknown; /* unknown: layers that have no digest yet */
};

/* Compares them all. One that is not what it was is marked in the list, and no box starts on it any more, is restored to it or forked from
 * it. PALE_NOT_FOUND if one is gone. Blocks, for as long as reading all of it takes. */
int verification_run(const struct place *p, struct verification *v, struct pale_err *e) MUST_CHECK;
