/* SPDX-License-Identifier: Apache-2.0 */
/* Owns WebSocket frames. */
#include "net/wsframe.h"

#include <string.h>

static bool is_op(unsigned op)
{
    return op <= WS_BINARY || (op >= WS_CLOSE && op <= WS_PONG);
}

/* The length, in its shortest form; *ret_at moves behind it. */
static int take_length(const uint8_t *p, size_t n, size_t *ret_at, uint64_t *ret)
{
    unsigned first = p[1] & 0x7f, bytes = first == 126 ? 2 : first == 127 ? 8 : 0;
    uint64_t v = first;
    if (n < 2 + bytes)
        return 0;
    for (unsigned i = 0; i < bytes; i++)
        v = (i ? v << 8 : 0) | p[2 + i];
    if ((bytes == 2 && v < 126) || (bytes == 8 && (v <= 0xffff || v >> 63)))
        return -WS_PROTOCOL;
    *ret_at = 2 + bytes;
    *ret = v;
    return 1;
}

int ws_parse(const uint8_t *p, size_t n, enum http_side from, struct ws_frame *ret, size_t *ret_used)
{
    size_t at = 0;
    uint64_t len = 0;
    if (n < 2)
        return 0;
    *ret = (struct ws_frame){.op = (enum ws_op)(p[0] & 15), .fin = p[0] & 0x80, .masked = p[1] & 0x80};
    if ((p[0] & 0x70) || !is_op(p[0] & 15) || ret->masked != (from == HTTP_REQUEST))
        return -WS_PROTOCOL;
    int got = take_length(p, n, &at, &len);
    if (got != 1)
        return got;
    if (ret->op >= WS_CLOSE && (!ret->fin || len > WS_CONTROL_MAX))
        return -WS_PROTOCOL;
    if (len > WS_PAYLOAD_MAX)
        return -WS_TOO_BIG;
    size_t head = at + (ret->masked ? 4 : 0);
    if (n < head || n - head < len)
        return 0;
    if (ret->masked)
        memcpy(ret->mask, p + at, 4);
    ret->data = p + head;
    ret->len = (size_t)len;
    *ret_used = head + (size_t)len;
    return 1;
}

void ws_unmask(const struct ws_frame *f, uint8_t *ret)
{
    for (size_t i = 0; i < f->len; i++)
        ret[i] = f->masked ? f->data[i] ^ f->mask[i & 3] : f->data[i];
}

size_t ws_put_head(uint8_t ret[WS_HEAD_MAX], enum ws_op op, bool fin, size_t len, const uint8_t mask[4])
{
    size_t at = 2;
    unsigned bytes = len < 126 ? 0 : len <= 0xffff ? 2 : 8;
    ret[0] = (uint8_t)((fin ? 0x80 : 0) | op);
    ret[1] = (uint8_t)((mask ? 0x80 : 0) | (bytes == 0 ? len : bytes == 2 ? 126 : 127));
    for (unsigned i = bytes; i-- > 0;)
        ret[at++] = (uint8_t)((uint64_t)len >> (8 * i));
    if (mask) {
        memcpy(ret + at, mask, 4);
        at += 4;
    }
    return at;
}

/* --- the key --- */

/* SHA-1, which the protocol asks for and nothing here relies on. One short text. */
static uint32_t rotate(uint32_t v, int by)
{
    return v << by | v >> (32 - by);
}

static void sha1_block(uint32_t h[5], const uint8_t *p)
{
    uint32_t w[80], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 | (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
    for (int i = 16; i < 80; i++)
        w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    for (int i = 0; i < 80; i++) {
        uint32_t f = i < 20 ? (b & c) | (~b & d) : i < 40 || i >= 60 ? b ^ c ^ d : (b & c) | (b & d) | (c & d);
        uint32_t k = i < 20 ? 0x5a827999 : i < 40 ? 0x6ed9eba1 : i < 60 ? 0x8f1bbcdc : 0xca62c1d6;
        uint32_t t = rotate(a, 5) + f + e + k + w[i];
        e = d;
        d = c;
        c = rotate(b, 30);
        b = a;
        a = t;
    }
    h[0] += a;
    h[1] += b;
    h[2] += c;
    h[3] += d;
    h[4] += e;
}

#define KEY_BYTES 24
#define GUID "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

bool ws_accept(const struct http_text *key, char ret[WS_ACCEPT_BYTES])
{
    uint8_t text[128] = {0}, sum[21] = {0};
    uint32_t h[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    const size_t n = KEY_BYTES + sizeof(GUID) - 1;
    /* Sixteen bytes in base 64: 22 digits and two signs of equality. */
    if (key->len != KEY_BYTES || memcmp(key->at + 22, "==", 2) != 0)
        return false;
    for (int i = 0; i < 22; i++)
        if (!memchr(digits, key->at[i], 64))
            return false;
    memcpy(text, key->at, KEY_BYTES);
    memcpy(text + KEY_BYTES, GUID, sizeof(GUID) - 1);
    text[n] = 0x80;
    text[126] = (uint8_t)(8 * n >> 8);
    text[127] = (uint8_t)(8 * n);
    sha1_block(h, text);
    sha1_block(h, text + 64);
    for (int i = 0; i < 20; i++)
        sum[i] = (uint8_t)(h[i / 4] >> (24 - 8 * (i % 4)));
    for (int i = 0; i < 7; i++) {
        uint32_t v = (uint32_t)sum[3 * i] << 16 | (uint32_t)sum[3 * i + 1] << 8 | sum[3 * i + 2];
        for (int k = 0; k < 4; k++)
            ret[4 * i + k] = digits[v >> (18 - 6 * k) & 63];
    }
    ret[27] = '=';
    ret[28] = 0;
    return true;
}
