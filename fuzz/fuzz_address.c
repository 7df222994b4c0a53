/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: addresses and ranges, as text beside the C library's reader, and as any sixteen bytes. The first byte chooses. */
#include <arpa/inet.h>
#include <assert.h>

#include "input.h"
#include "net/address.h"

static void check_address(const struct address *a)
{
    char text[ADDRESS_TEXT_MAX], other[64];
    uint8_t bytes[16] = {0};
    struct address again = {0};
    int family = a->family == ADDRESS_V4 ? AF_INET : AF_INET6;
    assert(a->family == ADDRESS_V4 || a->family == ADDRESS_V6);
    address_text(a, text);
    assert(strlen(text) < sizeof(text) && address_parse(text, strlen(text), &again) && memcmp(a, &again, sizeof(*a)) == 0);
    assert(inet_pton(family, text, bytes) == 1 && memcmp(bytes, a->byte, 16) == 0);
    /* The C library writes one more kind with dots. */
    assert(inet_ntop(family, a->byte, other, sizeof(other)));
    assert(strcmp(text, other) == 0 || (strncmp(other, "::", 2) == 0 && strchr(other, '.') && strncmp(other, "::ffff:", 7) != 0));
    assert(address_class(a) < ADDRESS_CLASSES && address_class_text(address_class(a)));
}

static void try_text(struct input *in)
{
    size_t n;
    const char *p = (const char *)input_bytes(in, in->left, &n);
    struct address a = {0}, none = {0};
    struct address_range r;
    char text[128] = {0};
    uint8_t bytes[16] = {0};
    bool ours = address_parse(p, n, &a);
    if (ours)
        check_address(&a);
    else
        assert(memcmp(&a, &none, sizeof(a)) == 0);
    if (n < sizeof(text) && (n == 0 || !memchr(p, 0, n))) {
        memcpy(text, p, n);
        assert(ours == (inet_pton(strchr(text, ':') ? AF_INET6 : AF_INET, text, bytes) == 1));
    }
    if (!address_range_parse(p, n, &r))
        return;
    check_address(&r.first);
    assert(r.bits <= (r.first.family == ADDRESS_V4 ? 32 : 128) && address_is_in(&r.first, &r));
    /* The bit before the last that counts leads out of it. */
    a = r.first;
    if (r.bits) {
        a.byte[(r.bits - 1) / 8] ^= (uint8_t)(0x80 >> (r.bits - 1) % 8);
        assert(!address_is_in(&a, &r));
    }
}

/* No way to carry an IPv4 address makes it better. */
static void try_bytes(struct input *in)
{
    static const struct {
        uint8_t prefix[12];
        uint8_t at;
    } forms[] = {
        {{0}, 12},
        {{[10] = 0xff, 0xff}, 12},
        {{[8] = 0xff, 0xff}, 12},
        {{0, 0x64, 0xff, 0x9b}, 12},
        {{0x20, 2}, 2},
        {{0x20, 1}, 4},
        {{0x2a, 0, [10] = 0x5e, 0xfe}, 12},
        {{0xfe, 0x80, [8] = 2, 0, 0x5e, 0xfe}, 12},
    };
    struct address six = {.family = ADDRESS_V6}, four = {.family = ADDRESS_V4};
    size_t n;
    const uint8_t *p = input_bytes(in, 16, &n);
    memcpy(six.byte, p, n);
    memcpy(four.byte, p, n < 4 ? n : 4);
    check_address(&six);
    check_address(&four);
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        struct address a = {.family = ADDRESS_V6};
        memcpy(a.byte, forms[i].prefix, sizeof(forms[i].prefix));
        memcpy(a.byte + forms[i].at, four.byte, 4);
        assert(address_class(&a) >= address_class(&four));
    }
    /* Of all that is not 2000::/3 only what one translator reaches can be public. */
    if ((six.byte[0] & 0xe0) != 0x20 && memcmp(six.byte, forms[3].prefix, 12) != 0)
        assert(address_class(&six) != ADDRESS_PUBLIC);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    (input_byte(&in) & 1 ? try_bytes : try_text)(&in);
    return 0;
}
