/* SPDX-License-Identifier: Apache-2.0 */
/* Owns tickets. */
#include "mcp/ticket.h"

#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "base/sha256.h"
#include "base/base64.h"

#define BLOCK 64

/* HMAC-SHA256 over parts that each end with a NUL, so that none runs into the next. */
static void mac(const uint8_t key[TICKET_KEY], const char *const *parts, uint8_t ret[SHA256_BYTES])
{
    uint8_t pad[BLOCK];
    struct sha256 h;
    for (size_t i = 0; i < BLOCK; i++)
        pad[i] = (i < TICKET_KEY ? key[i] : 0) ^ 0x36;
    sha256_init(&h);
    sha256_add(&h, pad, BLOCK);
    for (; *parts; parts++)
        sha256_add(&h, *parts, strlen(*parts) + 1);
    sha256_final(&h, ret);
    for (size_t i = 0; i < BLOCK; i++)
        pad[i] ^= 0x36 ^ 0x5c;
    sha256_init(&h);
    sha256_add(&h, pad, BLOCK);
    sha256_add(&h, ret, SHA256_BYTES);
    sha256_final(&h, ret);
}

static bool is_same(const char *a, const char *b, size_t n)
{
    unsigned apart = 0;
    for (size_t i = 0; i < n; i++)
        apart |= (unsigned char)a[i] ^ (unsigned char)b[i];
    return apart == 0;
}

void ticket_seal(const uint8_t key[TICKET_KEY], const char *bound_to, const char *text, uint64_t expires_ms, struct buf *ret)
{
    uint8_t digest[SHA256_BYTES];
    char hex[SHA256_HEX], expiry[24];
    snprintf(expiry, sizeof(expiry), "%llu", (unsigned long long)expires_ms);
    mac(key, (const char *[]){expiry, text, bound_to, NULL}, digest);
    sha256_to_hex(digest, hex);
    buf_addf(ret, "%s.", expiry);
    base64_write(text, strlen(text), ret);
    buf_addf(ret, ".%s", hex);
}

bool ticket_open(const uint8_t key[TICKET_KEY], const char *bound_to, const char *ticket, uint64_t now_ms, struct buf *ret_text)
{
    uint8_t digest[SHA256_BYTES];
    char hex[SHA256_HEX], expiry[24];
    uint64_t expires = 0;
    const char *dot = strchr(ticket, '.'), *last = dot ? strchr(dot + 1, '.') : NULL;
    if (!last || strlen(last + 1) != SHA256_HEX - 1 || (size_t)(dot - ticket) >= sizeof(expiry))
        return false;
    memcpy(expiry, ticket, (size_t)(dot - ticket));
    expiry[dot - ticket] = 0;
    own_mem char *coded = strndup(dot + 1, (size_t)(last - dot - 1));
    if (!coded || !number_u64(expiry, UINT64_MAX, &expires) || !base64_read(coded, ret_text))
        return false;
    if (ret_text->len > 0 && memchr(ret_text->data, 0, ret_text->len))
        return false;
    mac(key, (const char *[]){expiry, buf_text(ret_text), bound_to, NULL}, digest);
    sha256_to_hex(digest, hex);
    return is_same(hex, last + 1, SHA256_HEX - 1) && now_ms < expires;
}
