/* SPDX-License-Identifier: Apache-2.0 */
/* Tar archives from a fuzzer's input: few of its own would have headers whose checksums are right. */
#pragma once

#include "input.h"
#include "net/tarhead.h"

UNSEEN static inline void archive_set_sum(uint8_t *block)
{
    unsigned sum = 8 * ' ';
    for (size_t i = 0; i < TAR_BLOCK; i++)
        sum += i < 148 || i >= 156 ? block[i] : 0;
    for (int i = 0; i < 6; i++)
        block[148 + i] = (uint8_t)('0' + (sum >> 3 * (5 - i) & 7));
    block[154] = 0;
    block[155] = ' ';
}

/* An archive from little input: each entry is a type, a name, a target and content, or a block as it is. */
UNSEEN static inline size_t archive_make(struct input *in, uint8_t *ret, size_t cap)
{
    static const char types[] = "0052LKxxg0521346S7x";
    size_t n = 0;
    while (in->left && n + 5 * TAR_BLOCK < cap) {
        uint8_t flags = input_byte(in);
        uint8_t *block = ret + n;
        struct tar_head h = {.type = (uint8_t)types[flags % (sizeof(types) - 1)], .mode = flags * 3u & 0777};
        input_text(in, h.name, sizeof(h.name));
        input_text(in, h.link, flags & 0x80 ? sizeof(h.link) : 2);
        size_t size = input_byte(in) * 3u, got;
        h.size = (int64_t)size;
        h.mtime = flags;
        tar_head_put(block, &h);
        for (uint8_t pokes = flags & 0x40 ? input_byte(in) % 8 : 0; pokes; pokes--)
            block[input_number(in, 2) % TAR_BLOCK] = input_byte(in);
        if (block[0])
            archive_set_sum(block);
        const uint8_t *content = input_bytes(in, size, &got);
        memset(ret + n + TAR_BLOCK, 0, 2 * TAR_BLOCK);
        memcpy(ret + n + TAR_BLOCK, content, got);
        n += TAR_BLOCK + size + tar_padding(size);
    }
    memset(ret + n, 0, 2 * TAR_BLOCK);
    return n + 2 * TAR_BLOCK;
}
