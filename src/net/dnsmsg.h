/* SPDX-License-Identifier: Apache-2.0 */
/* DNS as a server speaks it: a question of a box is read, and an answer of ours is written.
 *
 * A query is one question of class IN, and perhaps the extension (EDNS, RFC 6891) whose options are read over; anything else in it is
 * refused. An answer holds addresses, or says that there are none, or why not (RFC 8914). Nothing of a query comes back but its id, two
 * flags and the question, which keeps the case in which it was asked. */
#pragma once

#include "base/limits.h"
#include "net/address.h"
#include "net/dnswire.h"

struct dns_question {
    uint16_t id, type;
    struct dns_name name; /* as it was asked */
};

struct dns_query {
    struct dns_question question;
    bool recursion_desired, checking_disabled;
    bool extended, dnssec_ok;
    uint16_t datagram_bytes;       /* that the asker takes */
    enum hostname_trouble trouble; /* why the name is no host's; with HOSTNAME_GOOD, host is it */
    struct hostname host;
};

/* Not even an error is to be sent: it is no query, and an answer to an answer could go on for ever. */
#define DNS_IGNORE 255

/* 0, or the negative dns_result that dnsmsg_fault is to tell, or -DNS_IGNORE. Any name that is one to DNS is taken. */
int dnsmsg_parse(const uint8_t *p, size_t n, struct dns_query *ret);

/* On a stream each message has its length before it. 1: a whole one stands behind the first two bytes; 0: need more; -1: longer than any
 * query may be. */
int dnsmsg_frame(const uint8_t *p, size_t n, size_t *ret_len);

/* Why there is no address, by the numbers of RFC 8914. */
enum dns_reason {
    DNS_REASON_OTHER = 0,
    DNS_REASON_BLOCKED = 15,     /* by a rule */
    DNS_REASON_PROHIBITED = 18,  /* nobody may ask here */
    DNS_REASON_UNREACHABLE = 22, /* no server of the name */
    DNS_REASON_NETWORK_ERROR = 23,
};

struct dns_answer {
    enum dns_result result;
    const struct address *address; /* those of the family that was asked for are told */
    size_t count;
    uint32_t ttl; /* of addresses; of there being none as well */
    enum dns_reason reason;
    const char *text; /* NULL: no reason. Told to those who understand the extension, cut to what fits */
};

#define DNS_ANSWER_BYTES 2048u

/* Writes an answer, with its length before it if it goes to a stream. A datagram tells as many addresses as fit, and that there are more.
 * Returns the bytes. */
size_t dnsmsg_answer(const struct dns_query *q, const struct dns_answer *a, bool stream, uint8_t ret[DNS_ANSWER_BYTES]);

/* Writes the answer to a message that dnsmsg_parse did not take, with what it returned. Returns the bytes; 0: send nothing. */
size_t dnsmsg_fault(const uint8_t *p, size_t n, int fault, bool stream, uint8_t ret[DNS_ANSWER_BYTES]);
