/* SPDX-License-Identifier: Apache-2.0 */
/* DNS as a client speaks it: our question to a server, and the addresses that its answer gives.
 *
 * The server, and whoever can send in its name, is hostile: an answer counts only with the id and the question as they were sent, case
 * included, so that whoever mixes the case has more for a stranger to guess. What addresses are good for, net/address.h says. */
#pragma once

#include "base/err.h"
#include "net/dnsmsg.h"

struct dns_found {
    unsigned result; /* a dns_result; servers have others too */
    bool truncated;  /* ask again over a stream; there are no addresses then */
    uint32_t ttl;    /* the least of all that led here; 0 if there is no address */
    size_t count;    /* of different ones, the first that came; 0 with NOERROR: the name has none of that family */
    struct address address[DNS_ADDRESSES_MAX];
};

#define DNS_LOOKUP_BYTES (2 + DNS_HEAD_BYTES + DNS_NAME_BYTES + 4 + 11)

/* A question for the addresses of a host: DNS_A or DNS_AAAA. */
void dnslookup_question(uint16_t id, enum dns_type type, const struct hostname *host, struct dns_question *ret);

/* Writes it, with its length before it if it goes to a stream. Returns the bytes. */
size_t dnslookup_write(const struct dns_question *q, bool stream, uint8_t ret[DNS_LOOKUP_BYTES]);

/* 1: the answer; 0: a message, but not the answer to this question, which may still come; negative: an answer that is broken. */
int dnslookup_parse(const struct dns_question *q, const uint8_t *p, size_t n, struct dns_found *ret, struct pale_err *e) MUST_CHECK;
