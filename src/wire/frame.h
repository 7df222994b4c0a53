/* SPDX-License-Identifier: Apache-2.0 */
/* Frames: how messages are cut out of a byte stream, on the wire to pale-init and on a keeper's socket alike.
 *
 * How it works: eight bytes of head (length of the payload, type, a zero byte, channel; little-endian), then the payload.
 * The parser is pure and bounded; a head that is out of bounds is bad at once, before its payload arrives. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"

#define FRAME_HEAD 8u

struct frame {
    uint8_t type;
    uint16_t chan;
    const uint8_t *data;
    uint32_t len;
};

void frame_put_head(uint8_t ret[FRAME_HEAD], uint8_t type, uint16_t chan, uint32_t len);

/* How long the frame is that begins with this head; 0: it is none. */
size_t frame_whole(const uint8_t head[FRAME_HEAD]);

/* 1: a whole frame stands at p, *ret_used bytes long; 0: need more; -1: this is no frame. */
int frame_parse(const uint8_t *p, size_t n, struct frame *ret, size_t *ret_used);
