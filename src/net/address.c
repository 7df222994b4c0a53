/* SPDX-License-Identifier: Apache-2.0 */
/* Owns addresses: their text, ranges and classes. Pure.
 *
 * How it works: whoever names an address to us (a box, a DNS server) may be hostile and wants a host or a service near us reached. So the
 * classes are a table, from IANA's registries of special-purpose addresses, every row that fits is looked at, the worst one counts, and an
 * address that no row speaks of is reserved. Ways to write an IPv4 address in an IPv6 address are rows too, and say which bytes hold it. A
 * translator's prefix that a network chose for itself cannot be known here. */
#include "net/address.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "net/httphead.h"

/* --- text --- */

/* A decimal number without leading zeros; moves *p behind it. */
static bool take_decimal(const char **p, const char *end, unsigned most, unsigned *ret)
{
    const char *s = *p;
    unsigned v = 0;
    for (; s < end && *s >= '0' && *s <= '9'; s++) {
        v = 10 * v + (unsigned)(*s - '0');
        if (v > most)
            return false;
    }
    if (s == *p || (**p == '0' && s - *p > 1))
        return false;
    *p = s;
    *ret = v;
    return true;
}

static bool parse_v4(const char *p, const char *end, uint8_t ret[4])
{
    for (int i = 0; i < 4; i++) {
        unsigned v = 0;
        if (i && (p == end || *p++ != '.'))
            return false;
        if (!take_decimal(&p, end, 255, &v))
            return false;
        ret[i] = (uint8_t)v;
    }
    return p == end;
}

/* One to four hexadecimal digits; moves *p behind them. */
static bool take_group(const char **p, const char *end, uint8_t ret[2])
{
    unsigned v = 0, digits = 0;
    for (; *p < end && http_hex(**p) >= 0; ++*p, digits++) {
        if (digits == 4)
            return false;
        v = v << 4 | (unsigned)http_hex(**p);
    }
    ret[0] = (uint8_t)(v >> 8);
    ret[1] = (uint8_t)v;
    return digits > 0;
}

/* Does an IPv4 address end the text here? A group has no dot. */
static bool is_dotted(const char *p, const char *end)
{
    return memchr(p, '.', (size_t)(end - p)) && !memchr(p, ':', (size_t)(end - p));
}

/* Groups and at most one gap, which becomes as many zeros as are missing, and at least one group of them. */
static bool parse_v6(const char *p, const char *end, uint8_t ret[16])
{
    size_t n = 0, gap = SIZE_MAX;
    if (end - p >= 2 && p[0] == ':' && p[1] == ':') {
        gap = 0;
        p += 2;
    }
    while (p < end) {
        if (n == 16)
            return false;
        if (is_dotted(p, end)) {
            if (n > 12 || !parse_v4(p, end, ret + n))
                return false;
            n += 4;
            break;
        }
        if (!take_group(&p, end, ret + n))
            return false;
        n += 2;
        if (p == end)
            break;
        if (*p++ != ':' || p == end)
            return false;
        if (*p == ':') {
            if (gap != SIZE_MAX)
                return false;
            gap = n;
            p++;
        }
    }
    if (gap == SIZE_MAX)
        return n == 16;
    if (n > 14)
        return false;
    memmove(ret + 16 - (n - gap), ret + gap, n - gap);
    memset(ret + gap, 0, 16 - n);
    return true;
}

bool address_parse(const char *p, size_t n, struct address *ret)
{
    struct address a = {0};
    bool six = n > 0 && memchr(p, ':', n);
    if (n == 0 || n >= ADDRESS_TEXT_MAX || !(six ? parse_v6(p, p + n, a.byte) : parse_v4(p, p + n, a.byte)))
        return false;
    a.family = six ? ADDRESS_V6 : ADDRESS_V4;
    *ret = a;
    return true;
}

static char *put_decimal(char *s, unsigned v)
{
    if (v >= 100)
        *s++ = (char)('0' + v / 100);
    if (v >= 10)
        *s++ = (char)('0' + v / 10 % 10);
    *s++ = (char)('0' + v % 10);
    return s;
}

static char *put_v4(char *s, const uint8_t byte[4])
{
    for (int i = 0; i < 4; i++) {
        if (i)
            *s++ = '.';
        s = put_decimal(s, byte[i]);
    }
    return s;
}

static char *put_group(char *s, unsigned v)
{
    for (int shift = 12; shift >= 0; shift -= 4)
        if (shift == 0 || v >> shift)
            *s++ = "0123456789abcdef"[v >> shift & 15];
    return s;
}

/* The longest run of two zero groups or more, the first of equals; its length, or 0. */
static size_t longest_gap(const unsigned group[8], size_t *ret_at)
{
    size_t best = 1, run = 0;
    for (size_t i = 0; i < 8; i++) {
        run = group[i] ? 0 : run + 1;
        if (run > best) {
            best = run;
            *ret_at = i + 1 - run;
        }
    }
    return best > 1 ? best : 0;
}

static char *put_v6(char *s, const uint8_t byte[16])
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    unsigned group[8];
    size_t at = 0;
    for (int i = 0; i < 8; i++)
        group[i] = (unsigned)byte[2 * i] << 8 | byte[2 * i + 1];
    if (memcmp(byte, mapped, sizeof(mapped)) == 0) {
        memcpy(s, "::ffff:", 7);
        return put_v4(s + 7, byte + 12);
    }
    size_t gap = longest_gap(group, &at);
    for (size_t i = 0; i < 8; i++) {
        if (gap && i == at) {
            *s++ = ':';
            i += gap - 1;
            if (i == 7)
                *s++ = ':';
            continue;
        }
        if (i)
            *s++ = ':';
        s = put_group(s, group[i]);
    }
    return s;
}

const char *address_text(const struct address *a, char ret[ADDRESS_TEXT_MAX])
{
    char *end = a->family == ADDRESS_V4 ? put_v4(ret, a->byte) : put_v6(ret, a->byte);
    *end = 0;
    return ret;
}

/* --- ranges --- */

static bool same_bits(const uint8_t *a, const uint8_t *b, unsigned bits)
{
    unsigned whole = bits / 8, rest = bits % 8;
    if (memcmp(a, b, whole) != 0)
        return false;
    return rest == 0 || (a[whole] ^ b[whole]) >> (8 - rest) == 0;
}

bool address_range_parse(const char *p, size_t n, struct address_range *ret)
{
    const char *slash = n ? memchr(p, '/', n) : NULL, *end = p + n;
    struct address_range r = {0};
    if (!address_parse(p, slash ? (size_t)(slash - p) : n, &r.first))
        return false;
    unsigned all = r.first.family == ADDRESS_V4 ? 32 : 128, bits = all;
    if (slash) {
        slash++;
        if (!take_decimal(&slash, end, all, &bits) || slash != end)
            return false;
    }
    for (unsigned i = bits; i < all; i++)
        if (r.first.byte[i / 8] >> (7 - i % 8) & 1)
            return false;
    r.bits = (uint8_t)bits;
    *ret = r;
    return true;
}

const char *address_range_text(const struct address_range *r, char ret[ADDRESS_RANGE_MAX])
{
    char first[ADDRESS_TEXT_MAX];
    snprintf(ret, ADDRESS_RANGE_MAX, "%s/%u", address_text(&r->first, first), (unsigned)r->bits);
    return ret;
}

bool address_range_covers(const struct address_range *outer, const struct address_range *inner)
{
    return inner->bits >= outer->bits && address_is_in(&inner->first, outer);
}

bool address_is_in(const struct address *a, const struct address_range *r)
{
    return a->family == r->first.family && same_bits(a->byte, r->first.byte, r->bits);
}

/* --- classes --- */

/* Which bytes of an IPv6 address hold an IPv4 address. */
enum holds {
    HOLDS_NONE,
    HOLDS_AT_32, /* RFC 4380: the server of a tunnel */
    HOLDS_AT_16, /* RFC 3056 */
    HOLDS_AT_48, /* RFC 6052 leaves byte 8 out, whatever the length of the prefix */
    HOLDS_AT_56,
    HOLDS_AT_64,
    HOLDS_AT_96,
    HOLDS_AT_96_INVERTED, /* RFC 4380: the client of a tunnel */
    HOLDS_COUNT,
    HOLDS_SOMEWHERE = HOLDS_COUNT, /* as RFC 6052 has it, behind a prefix of unknown length */
};

static const uint8_t held_bytes[][4] = {
    [HOLDS_AT_32] = {4, 5, 6, 7},
    [HOLDS_AT_16] = {2, 3, 4, 5},
    [HOLDS_AT_48] = {6, 7, 9, 10},
    [HOLDS_AT_56] = {7, 9, 10, 11},
    [HOLDS_AT_64] = {9, 10, 11, 12},
    [HOLDS_AT_96] = {12, 13, 14, 15},
    [HOLDS_AT_96_INVERTED] = {12, 13, 14, 15},
};
static_assert(sizeof(held_bytes) / sizeof(held_bytes[0]) == HOLDS_COUNT, "bytes for each");

static const struct row {
    uint8_t first[16];
    uint8_t bits;
    uint8_t class; /* enum address_class */
    uint8_t holds; /* enum holds */
} rows_v4[] = {
    {{0}, 0, ADDRESS_PUBLIC, 0},
    {{0}, 8, ADDRESS_RESERVED, 0}, /* this network */
    {{0}, 32, ADDRESS_UNSPECIFIED, 0},
    {{10}, 8, ADDRESS_PRIVATE, 0},
    {{100, 64}, 10, ADDRESS_SHARED, 0},
    {{100, 100, 100, 200}, 32, ADDRESS_METADATA, 0}, /* Alibaba */
    {{127}, 8, ADDRESS_LOOPBACK, 0},
    {{168, 63, 129, 16}, 32, ADDRESS_METADATA, 0}, /* Azure */
    {{169, 254}, 16, ADDRESS_LINK_LOCAL, 0},
    {{169, 254, 0, 23}, 32, ADDRESS_METADATA, 0},  /* Tencent */
    {{169, 254, 42, 42}, 32, ADDRESS_METADATA, 0}, /* Scaleway */
    {{169, 254, 169}, 24, ADDRESS_METADATA, 0},    /* .254 nearly everywhere, and what stands beside it */
    {{169, 254, 170}, 24, ADDRESS_METADATA, 0},    /* .2 and .23: credentials of containers */
    {{172, 16}, 12, ADDRESS_PRIVATE, 0},
    {{192, 0, 0}, 24, ADDRESS_RESERVED, 0},      /* protocols; its two anycast services are for no box */
    {{192, 0, 0, 192}, 32, ADDRESS_METADATA, 0}, /* Oracle */
    {{192, 0, 2}, 24, ADDRESS_DOCUMENTATION, 0},
    {{192, 88, 99}, 24, ADDRESS_TRANSLATED, 0}, /* relays of 6to4 */
    {{192, 168}, 16, ADDRESS_PRIVATE, 0},
    {{198, 18}, 15, ADDRESS_BENCHMARK, 0},
    {{198, 51, 100}, 24, ADDRESS_DOCUMENTATION, 0},
    {{203, 0, 113}, 24, ADDRESS_DOCUMENTATION, 0},
    {{224}, 4, ADDRESS_MULTICAST, 0},
    {{240}, 4, ADDRESS_RESERVED, 0},
    {{255, 255, 255, 255}, 32, ADDRESS_BROADCAST, 0},
};

/* All of IPv6 that has been given out for hosts is 2000::/3; the rest is reserved unless a row has it. */
static const struct row rows_v6[] = {
    {{0}, 128, ADDRESS_UNSPECIFIED, 0},
    {{[15] = 1}, 128, ADDRESS_LOOPBACK, 0},
    {{0}, 96, ADDRESS_TRANSLATED, HOLDS_AT_96},                             /* IPv4-compatible */
    {{[10] = 0xff, 0xff}, 96, ADDRESS_TRANSLATED, HOLDS_AT_96},             /* IPv4-mapped */
    {{[8] = 0xff, 0xff}, 96, ADDRESS_TRANSLATED, HOLDS_AT_96},              /* IPv4-translated, RFC 2765 */
    {{0, 0x64, 0xff, 0x9b}, 96, ADDRESS_PUBLIC, HOLDS_AT_96},               /* NAT64: as good as what it leads to */
    {{0, 0x64, 0xff, 0x9b, 0, 1}, 48, ADDRESS_TRANSLATED, HOLDS_SOMEWHERE}, /* NAT64 of one network */
    {{0x20}, 3, ADDRESS_PUBLIC, 0},
    {{0x20, 1}, 23, ADDRESS_RESERVED, 0},             /* protocols; ORCHID, AMT, AS112 among them */
    {{0x20, 1}, 32, ADDRESS_TRANSLATED, HOLDS_AT_32}, /* Teredo */
    {{0x20, 1}, 32, ADDRESS_TRANSLATED, HOLDS_AT_96_INVERTED},
    {{0x20, 1, 0, 2}, 48, ADDRESS_BENCHMARK, 0},
    {{0x20, 1, 0x0d, 0xb8}, 32, ADDRESS_DOCUMENTATION, 0},
    {{0x20, 2}, 16, ADDRESS_TRANSLATED, HOLDS_AT_16}, /* 6to4 */
    {{0x3f, 0xff}, 20, ADDRESS_DOCUMENTATION, 0},
    {{0xfc}, 7, ADDRESS_PRIVATE, 0},
    {{0xfd, 0, 0, 0x42, [15] = 0x42}, 128, ADDRESS_METADATA, 0},                   /* Scaleway */
    {{0xfd, 0, 0, 0xc1, [12] = 0xa9, 0xfe, 0xa9, 0xfe}, 128, ADDRESS_METADATA, 0}, /* Oracle */
    {{0xfd, 0, 1, 0, [12] = 1, 0, 2, 0}, 128, ADDRESS_METADATA, 0},                /* Alibaba */
    {{0xfd, 0, 0x0e, 0xc2}, 32, ADDRESS_METADATA, 0},                              /* Amazon */
    {{0xfd, 0, 0xa9, 0xfe, 0xa9, 0xfe, [15] = 1}, 128, ADDRESS_METADATA, 0},
    {{0xfd, 0x20, 0, 0xce, [14] = 2, 0x54}, 128, ADDRESS_METADATA, 0}, /* Google */
    {{0xfe, 0x80}, 10, ADDRESS_LINK_LOCAL, 0},
    {{0xfe, 0xc0}, 10, ADDRESS_PRIVATE, 0}, /* of a site, as it was called */
    {{0xff}, 8, ADDRESS_MULTICAST, 0},
};

static enum address_class worse(enum address_class a, enum address_class b)
{
    return a > b ? a : b;
}

static enum address_class class_v4(const uint8_t byte[4])
{
    enum address_class c = ADDRESS_PUBLIC;
    for (size_t i = 0; i < sizeof(rows_v4) / sizeof(rows_v4[0]); i++)
        if (same_bits(byte, rows_v4[i].first, rows_v4[i].bits))
            c = worse(c, (enum address_class)rows_v4[i].class);
    return c;
}

static enum address_class class_held(const uint8_t byte[16], enum holds h)
{
    uint8_t four[4];
    if (h == HOLDS_SOMEWHERE) {
        enum address_class worst = ADDRESS_PUBLIC;
        for (enum holds at = HOLDS_AT_48; at <= HOLDS_AT_96; at++) {
            enum address_class c = class_held(byte, at);
            /* All but one of the places hold something else, and mostly zeros. */
            worst = c == ADDRESS_UNSPECIFIED ? worst : worse(worst, c);
        }
        return worst;
    }
    for (int i = 0; i < 4; i++)
        four[i] = byte[held_bytes[h][i]] ^ (h == HOLDS_AT_96_INVERTED ? 0xff : 0);
    return class_v4(four);
}

/* ISATAP (RFC 5214) marks the second half of an address, beneath any prefix. */
static bool is_isatap(const uint8_t byte[16])
{
    return (byte[8] & ~3) == 0 && byte[9] == 0 && byte[10] == 0x5e && byte[11] == 0xfe;
}

static enum address_class class_v6(const uint8_t byte[16])
{
    enum address_class c = ADDRESS_PUBLIC;
    bool known = false;
    for (size_t i = 0; i < sizeof(rows_v6) / sizeof(rows_v6[0]); i++) {
        if (!same_bits(byte, rows_v6[i].first, rows_v6[i].bits))
            continue;
        known = true;
        c = worse(c, (enum address_class)rows_v6[i].class);
        if (rows_v6[i].holds)
            c = worse(c, class_held(byte, (enum holds)rows_v6[i].holds));
    }
    if (is_isatap(byte))
        c = worse(c, class_held(byte, HOLDS_AT_96));
    return known ? c : worse(c, ADDRESS_RESERVED);
}

enum address_class address_class(const struct address *a)
{
    return a->family == ADDRESS_V4 ? class_v4(a->byte) : class_v6(a->byte);
}

const char *address_class_text(enum address_class c)
{
    static const char *const texts[] = {
        [ADDRESS_PUBLIC] = "public",           [ADDRESS_DOCUMENTATION] = "documentation",
        [ADDRESS_BENCHMARK] = "benchmark",     [ADDRESS_RESERVED] = "reserved",
        [ADDRESS_TRANSLATED] = "translated",   [ADDRESS_MULTICAST] = "multicast",
        [ADDRESS_BROADCAST] = "broadcast",     [ADDRESS_SHARED] = "shared",
        [ADDRESS_PRIVATE] = "private",         [ADDRESS_LINK_LOCAL] = "link-local",
        [ADDRESS_UNSPECIFIED] = "unspecified", [ADDRESS_LOOPBACK] = "loopback",
        [ADDRESS_METADATA] = "metadata",
    };
    static_assert(sizeof(texts) / sizeof(texts[0]) == ADDRESS_CLASSES, "a text each");
    return texts[c];
}
