/* SPDX-License-Identifier: Apache-2.0 */
/* What DNS messages are made of (RFC 1035): numbers, names and records, read by a cursor that checks every step and written to a place that
 * has an end. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/hostname.h"

#define DNS_HEAD_BYTES 12u
#define DNS_NAME_BYTES 255u /* of a name, lengths and the root included: the protocol's own limit */

enum dns_type {
    DNS_A = 1,
    DNS_CNAME = 5,
    DNS_SOA = 6,
    DNS_AAAA = 28,
    DNS_OPT = 41,
};

#define DNS_IN 1u

/* Bits of the second number of a head; the lowest four are the result. */
enum dns_flag {
    DNS_RESPONSE = 0x8000,
    DNS_OPCODE = 0x7800,
    DNS_AUTHORITATIVE = 0x0400,
    DNS_TRUNCATED = 0x0200,
    DNS_RECURSION_DESIRED = 0x0100,
    DNS_RECURSION_AVAILABLE = 0x0080,
    DNS_ZERO = 0x0040,
    DNS_AUTHENTIC = 0x0020,
    DNS_CHECKING_DISABLED = 0x0010,
};

enum dns_result {
    DNS_NOERROR = 0,
    DNS_FORMERR = 1,
    DNS_SERVFAIL = 2,
    DNS_NXDOMAIN = 3,
    DNS_NOTIMP = 4,
    DNS_REFUSED = 5,
    DNS_BADVERS = 16,
};

/* Once something was not there, bad stays set, and all that is read is zero. */
struct dns_cursor {
    const uint8_t *message;
    size_t len, at;
    bool bad;
};

struct dns_head {
    uint16_t id, flags, questions, answers, authorities, additionals;
};

/* A name as it goes over the wire, without pointers. */
struct dns_name {
    size_t len;
    uint8_t byte[DNS_NAME_BYTES];
};

struct dns_record {
    struct dns_name owner;
    uint16_t type, class;
    uint32_t ttl;
    size_t data, data_len; /* where it stands in the message */
};

uint16_t dnswire_u16(struct dns_cursor *c);
uint32_t dnswire_u32(struct dns_cursor *c);
void dnswire_skip(struct dns_cursor *c, size_t n);
void dnswire_head(struct dns_cursor *c, struct dns_head *ret);

/* A name that stands here. With pointers false it must stand here as a whole; otherwise each pointer leads back, behind the head of the
 * message and before all that was read of the name so far. */
void dnswire_name(struct dns_cursor *c, bool pointers, struct dns_name *ret);

/* A record; the cursor then stands behind it. Data that goes beyond the message is none. */
void dnswire_record(struct dns_cursor *c, struct dns_record *ret);

/* Letters count as the same in either case. */
bool dnswire_same_name(const struct dns_name *a, const struct dns_name *b);

/* The labels with dots between them, and a NUL behind; returns the length. Any byte may be in it, so that it is for showing, quoted. */
size_t dnswire_text(const struct dns_name *n, char ret[DNS_NAME_BYTES]);

/* The host that is meant, in its one form. A dot within a label is no dot between labels. */
enum hostname_trouble dnswire_host(const struct dns_name *n, struct hostname *ret);

/* The other way round. */
void dnswire_from_host(const struct hostname *h, struct dns_name *ret);

/* Once something did not fit, full stays set, and nothing more is written. */
struct dns_writer {
    uint8_t *message;
    size_t cap, at;
    bool full;
};

void dnswire_put(struct dns_writer *w, const void *p, size_t n);
void dnswire_put_u16(struct dns_writer *w, unsigned v);
void dnswire_put_u32(struct dns_writer *w, uint32_t v);
void dnswire_put_head(struct dns_writer *w, const struct dns_head *h);
