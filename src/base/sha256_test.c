/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for base/sha256: the published vectors, and every split of a message. */
#include "base/test.h"

#include "base/sha256.h"

static void sha256_gives_the_published_digests(void **state)
{
    (void)state;
    char hex[SHA256_HEX];
    sha256_hex("", 0, hex);
    assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    sha256_hex("abc", 3, hex);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    const char *two = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    sha256_hex(two, strlen(two), hex);
    assert_string_equal(hex, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

static void sha256_does_not_care_how_bytes_arrive(void **state)
{
    (void)state;
    uint8_t msg[200], whole[SHA256_BYTES], parts[SHA256_BYTES];
    for (size_t i = 0; i < sizeof(msg); i++)
        msg[i] = (uint8_t)(i * 7);
    for (size_t n = 0; n <= sizeof(msg); n++)
        for (size_t cut = 0; cut <= n; cut += 13) {
            struct sha256 a, b;
            sha256_init(&a);
            sha256_add(&a, msg, n);
            sha256_final(&a, whole);
            sha256_init(&b);
            sha256_add(&b, msg, cut);
            sha256_add(&b, msg + cut, n - cut);
            sha256_final(&b, parts);
            assert_memory_equal(whole, parts, SHA256_BYTES);
        }
}

TESTS(cmocka_unit_test(sha256_gives_the_published_digests), cmocka_unit_test(sha256_does_not_care_how_bytes_arrive))
