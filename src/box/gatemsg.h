/* SPDX-License-Identifier: Apache-2.0 */
/* What pale-keeper and pale-gateway say to each other: whole messages over a socket that keeps them apart, and a page of meters.
 *
 * The gateway reads what a box and the network send, so its keeper takes none of its words for more than they are: texts are quoted, and
 * numbers are counts. It holds the box to a policy that it was given and can only ask to have it again. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"
#include "net/address.h"

/* Descriptors that pale-gateway is born with. */
enum gate_fd {
    GATE_TALK_FD = 3, /* the keeper */
    GATE_HAND_FD,     /* where the box's sockets come from, once */
    GATE_METER_FD,    /* struct gate_meters */
    GATE_FDS,
};

enum gate_type {
    /* from the keeper */
    GATE_POLICY = 1, /* with a file: the canonical text. It holds from now on, for connections that are open as well */
    GATE_RESOLV,     /* with a file: the host's resolv.conf */
    GATE_HOSTS,      /* with a file: the host's names of its own */
    GATE_GO,         /* what the ALLOWs of these numbers told is in the audit; code: how many there are */
    GATE_VERDICT,    /* to the question of that number; code: an enum gate_verdict */
    GATE_PUBLISH,    /* with a socket that listens on the host, at the port `number`: it leads to `port` of the box */
    GATE_ANSWERS,    /* number of them, in a file of struct gate_answer: what the operator says to questions before they are asked */
    GATE_CUT,        /* code 1: nothing goes out from now on, and what is open ends; 0: the policy holds again */
    /* to the keeper */
    GATE_HELLO, /* serving begins, with the policy that comes now, and the first time is there already; number: how often it has begun
                   before */
    GATE_ERROR, /* code and text: the box must not start */
    GATE_READY, /* the first policy holds */
    GATE_WANT_FILES,
    GATE_ALLOW,     /* a connection is about to be made; waits for GO */
    GATE_DENY,      /* something was refused */
    GATE_END,       /* a connection that was allowed is over; in and out are its bytes */
    GATE_FLOOD,     /* so many refusals are not told one by one */
    GATE_ASK,       /* a question for the operator, which a connection waits for: of GATE_NAME about the name, of GATE_TCP the address */
    GATE_TAKE_BACK, /* nobody waits for that one any more */
};

enum gate_verdict { GATE_YES = 1, GATE_NO, GATE_FULL /* too many questions */, GATE_NOBODY /* nobody can be asked */ };

/* An answer that stands: to every question about this host, a name or an address, and port. */
#define GATE_ANSWERS_MAX 768u
struct gate_answer {
    char host[DOMAIN_NAME_MAX + 1];
    uint16_t port;
    bool allow;
};

/* What was refused or allowed. */
enum gate_kind { GATE_TCP = 1, GATE_NAME, GATE_UDP, GATE_OTHER, GATE_IN, GATE_KINDS };

#define GATE_TEXT_MAX 256u
#define GATE_NUMBERS_MAX (GATE_TEXT_MAX / sizeof(uint64_t))
#define GATE_FLOWS_MAX 16384u /* connections at once */

struct gate_message {
    uint32_t type, code;
    uint64_t number;
    uint64_t in, out;
    uint32_t kind; /* enum gate_kind */
    uint16_t port;
    struct address address; /* family 0: none */
    char name[DOMAIN_NAME_MAX + 1];
    char rule[GATE_TEXT_MAX]; /* that decided */
    union {
        char text[GATE_TEXT_MAX]; /* why */
        uint64_t numbers[GATE_NUMBERS_MAX];
    };
};

/* Written by the gateway, read by the keeper; survives the gateway. */
#define GATE_HOSTS_MAX 512u
struct gate_host {
    char name[DOMAIN_NAME_MAX + 1]; /* or an address */
    uint16_t port;
    uint64_t connections, refused, in, out;
};
/* What was counted for a rule, by its text. */
#define GATE_RULES_MAX 512u
struct gate_rule {
    uint64_t hash, open, in, out;
};
struct gate_meters {
    uint64_t open, connections, refused, in, out, questions; /* in all; open: now */
    uint32_t hosts;                                          /* that are known by name; the last row is for all others */
    struct gate_host host[GATE_HOSTS_MAX];
    struct gate_rule rule[GATE_RULES_MAX];
};
