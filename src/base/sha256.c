/* SPDX-License-Identifier: Apache-2.0 */
/* Owns SHA-256. Pure. */
#include "base/sha256.h"

#include <string.h>

static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
    0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa,
    0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
    0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
    0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f,
    0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t ror(uint32_t x, int n)
{
    return (x >> n) | (x << (32 - n));
}

static void block_in(struct sha256 *h, const uint8_t *p)
{
    uint32_t w[64];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 | (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        uint32_t x = ror(w[i - 15], 7) ^ ror(w[i - 15], 18) ^ (w[i - 15] >> 3);
        uint32_t y = ror(w[i - 2], 17) ^ ror(w[i - 2], 19) ^ (w[i - 2] >> 10);
        w[i] = w[i - 16] + x + w[i - 7] + y;
    }
    uint32_t a = h->state[0], b = h->state[1], c = h->state[2], d = h->state[3];
    uint32_t e = h->state[4], f = h->state[5], g = h->state[6], z = h->state[7];
    for (int i = 0; i < 64; i++) {
        uint32_t t1 = z + (ror(e, 6) ^ ror(e, 11) ^ ror(e, 25)) + ((e & f) ^ (~e & g)) + K[i] + w[i];
        uint32_t t2 = (ror(a, 2) ^ ror(a, 13) ^ ror(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
        z = g, g = f, f = e, e = d + t1;
        d = c, c = b, b = a, a = t1 + t2;
    }
    const uint32_t add[8] = {a, b, c, d, e, f, g, z};
    for (int i = 0; i < 8; i++)
        h->state[i] += add[i];
}

void sha256_init(struct sha256 *h)
{
    static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(h->state, start, sizeof(start));
    h->total = 0;
}

void sha256_add(struct sha256 *h, const void *p, size_t n)
{
    const uint8_t *at = p;
    size_t fill = h->total % 64;
    h->total += n;
    if (fill) {
        size_t take = 64 - fill < n ? 64 - fill : n;
        memcpy(h->block + fill, at, take);
        at += take;
        n -= take;
        if (fill + take < 64)
            return;
        block_in(h, h->block);
    }
    for (; n >= 64; at += 64, n -= 64)
        block_in(h, at);
    if (n)
        memcpy(h->block, at, n);
}

void sha256_final(struct sha256 *h, uint8_t ret[SHA256_BYTES])
{
    uint64_t bits = h->total * 8;
    uint8_t pad[72] = {0x80};
    size_t fill = h->total % 64;
    size_t zeros = (fill < 56 ? 56 : 120) - fill;
    for (int i = 0; i < 8; i++)
        pad[zeros + (size_t)i] = (uint8_t)(bits >> (56 - 8 * i));
    sha256_add(h, pad, zeros + 8);
    for (int i = 0; i < 32; i++)
        ret[i] = (uint8_t)(h->state[i / 4] >> (24 - 8 * (i % 4)));
}

void sha256_to_hex(const uint8_t digest[SHA256_BYTES], char ret[SHA256_HEX])
{
    static const char hex[] = "0123456789abcdef";
    for (int i = 0; i < SHA256_BYTES; i++) {
        ret[2 * i] = hex[digest[i] >> 4];
        ret[2 * i + 1] = hex[digest[i] & 15];
    }
    ret[SHA256_HEX - 1] = 0;
}

void sha256_hex(const void *p, size_t n, char ret[SHA256_HEX])
{
    struct sha256 h;
    uint8_t d[SHA256_BYTES];
    sha256_init(&h);
    sha256_add(&h, p, n);
    sha256_final(&h, d);
    sha256_to_hex(d, ret);
}
