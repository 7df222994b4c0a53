/* SPDX-License-Identifier: Apache-2.0 */
/* Owns base64. */
#include "base/base64.h"

#include <string.h>

static const char set[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static int digit(char c)
{
    const char *at = c ? memchr(set, c, 64) : NULL;
    return at ? (int)(at - set) : -1;
}

bool base64_read(const char *text, struct buf *ret)
{
    size_t n = strlen(text);
    if (n % 4 != 0)
        return false;
    for (size_t i = 0; i < n; i += 4) {
        unsigned pad = i + 4 == n && text[i + 3] == '=' ? (text[i + 2] == '=' ? 2 : 1) : 0;
        uint32_t v = 0;
        for (unsigned k = 0; k < 4; k++) {
            int d = k >= 4 - pad ? 0 : digit(text[i + k]);
            if (d < 0)
                return false;
            v = v << 6 | (uint32_t)d;
        }
        uint8_t three[3] = {(uint8_t)(v >> 16), (uint8_t)(v >> 8), (uint8_t)v};
        if ((pad == 1 && three[2]) || (pad == 2 && (three[1] || three[2])))
            return false;
        buf_add(ret, three, 3 - pad);
    }
    return !ret->failed;
}

void base64_write(const void *p, size_t n, struct buf *ret)
{
    const uint8_t *b = p;
    for (size_t i = 0; i < n; i += 3) {
        uint32_t v = (uint32_t)b[i] << 16 | (i + 1 < n ? (uint32_t)b[i + 1] << 8 : 0) | (i + 2 < n ? b[i + 2] : 0);
        char four[4] = {set[v >> 18], set[v >> 12 & 63], i + 1 < n ? set[v >> 6 & 63] : '=', i + 2 < n ? set[v & 63] : '='};
        buf_add(ret, four, 4);
    }
}
