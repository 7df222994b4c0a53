/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the cutting of byte streams into frames. Pure. */
#include "wire/frame.h"

void frame_put_head(uint8_t ret[FRAME_HEAD], uint8_t type, uint16_t chan, uint32_t len)
{
    for (int i = 0; i < 4; i++)
        ret[i] = (uint8_t)(len >> (8 * i));
    ret[4] = type;
    ret[5] = 0;
    ret[6] = (uint8_t)chan;
    ret[7] = (uint8_t)(chan >> 8);
}

size_t frame_whole(const uint8_t head[FRAME_HEAD])
{
    uint32_t len = (uint32_t)head[0] | (uint32_t)head[1] << 8 | (uint32_t)head[2] << 16 | (uint32_t)head[3] << 24;
    return len > FRAME_PAYLOAD_MAX || head[5] != 0 ? 0 : FRAME_HEAD + (size_t)len;
}

int frame_parse(const uint8_t *p, size_t n, struct frame *ret, size_t *ret_used)
{
    if (n < FRAME_HEAD)
        return 0;
    size_t whole = frame_whole(p);
    if (whole == 0)
        return -1;
    if (n < whole)
        return 0;
    *ret =
        (struct frame){.type = p[4], .chan = (uint16_t)(p[6] | p[7] << 8), .data = p + FRAME_HEAD, .len = (uint32_t)(whole - FRAME_HEAD)};
    *ret_used = whole;
    return 1;
}
