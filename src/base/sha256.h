/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 (FIPS 180-4), by hand because the CLI and the keeper link libc alone: box ids, policy digests and the audit
 * chain need it on the path of every command. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SHA256_BYTES 32
#define SHA256_HEX 65 /* with the final NUL */

struct sha256 {
    uint32_t state[8];
    uint64_t total;
    uint8_t block[64];
};

void sha256_init(struct sha256 *h);
void sha256_add(struct sha256 *h, const void *p, size_t n);
void sha256_final(struct sha256 *h, uint8_t ret[SHA256_BYTES]);

/* One call: the digest of p as lower-case hex. */
void sha256_hex(const void *p, size_t n, char ret[SHA256_HEX]);
void sha256_to_hex(const uint8_t digest[SHA256_BYTES], char ret[SHA256_HEX]);
