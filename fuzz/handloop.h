/* SPDX-License-Identifier: Apache-2.0 */
/* An event loop in place of base/loop's that is turned by hand: a rig says what is ready, and what time it is. */
#pragma once

#include "base/loop.h"

#define HANDLOOP_MAX 64

struct handloop {
    struct loop_source *sources[HANDLOOP_MAX];
    size_t count, next;
};
extern struct handloop handloop;

/* Does one thing that is due: a timer, or else the next source for which ready says more than nothing. False: it rests, or has ended. */
bool handloop_turn(struct loop *l, int64_t now_ms, uint32_t (*ready)(const struct loop_source *s));
