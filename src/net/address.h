/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of IPv4 and IPv6: as text, in ranges, and what kind of place each one leads to.
 *
 * The text is strict: four decimal numbers without leading zeros, or the forms of RFC 4291 without a zone. What other readers take for an
 * address (hexadecimal, octal, fewer parts) is none here. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ADDRESS_TEXT_MAX 46 /* with its NUL */
#define ADDRESS_RANGE_MAX (ADDRESS_TEXT_MAX + 4)

enum address_family { ADDRESS_V4 = 4, ADDRESS_V6 = 6 };

/* Two of them are the same address if their bytes are the same. */
struct address {
    uint8_t family;   /* enum address_family */
    uint8_t byte[16]; /* the first four of an IPv4 address, the rest is zero */
};

struct address_range {
    struct address first;
    uint8_t bits; /* that count */
};

/* Where an address leads, better ones first: of several that fit the last counts. */
enum address_class {
    ADDRESS_PUBLIC,
    ADDRESS_RESERVED, /* for nobody, or for protocols and not for hosts */
    ADDRESS_DOCUMENTATION,
    ADDRESS_BENCHMARK,
    ADDRESS_TRANSLATED, /* another way to write an IPv4 address, or a tunnel to one */
    ADDRESS_MULTICAST,
    ADDRESS_BROADCAST,
    ADDRESS_SHARED, /* between a provider and its customers */
    ADDRESS_PRIVATE,
    ADDRESS_LINK_LOCAL,
    ADDRESS_UNSPECIFIED, /* which is the host itself to connect() */
    ADDRESS_LOOPBACK,
    ADDRESS_METADATA, /* where a cloud hands its credentials out */
    ADDRESS_CLASSES,
};

bool address_parse(const char *p, size_t n, struct address *ret);

/* As RFC 5952 writes it. Returns ret. */
const char *address_text(const struct address *a, char ret[ADDRESS_TEXT_MAX]);

/* ADDRESS/BITS, or an address alone for just that one. Bits beyond those that count must be zero: "10.0.0.1/8" could mean either. */
bool address_range_parse(const char *p, size_t n, struct address_range *ret);

/* ADDRESS/BITS, always with its bits. Returns ret. */
const char *address_range_text(const struct address_range *r, char ret[ADDRESS_RANGE_MAX]);

/* Is inner, of the same family, all within outer? */
bool address_range_covers(const struct address_range *outer, const struct address_range *inner);

/* An address is in ranges of its own family only. */
bool address_is_in(const struct address *a, const struct address_range *r);

/* What stands in an IPv6 address that carries one of IPv4 counts as well, and the worse of both is told. Only ADDRESS_PUBLIC may be
 * dialled without anybody having named it. Any other class is a reason to refuse and never one to permit: 2002:7f00:1::1, which a tunnel
 * leads anywhere, is loopback here. Whoever opens a private place goes by ranges. */
enum address_class address_class(const struct address *a);

/* One or two words: "loopback". */
const char *address_class_text(enum address_class c);
