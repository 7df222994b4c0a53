/* SPDX-License-Identifier: Apache-2.0 */
/* What the rules of a policy say about a flow: the one function that the gateway asks, about every name, connection and request.
 *
 * The order of rules has no meaning. A deny that matches always wins; else an allow; else an ask; else the network mode decides (filtered:
 * no, open: yes, none and host: always no and yes). So adding an allow or an ask can only widen a policy and adding a deny only narrow it:
 * an ask takes nothing back that is open anyway, as public addresses are in mode open and behind a name that is allowed.
 *
 * Names and addresses are judged apart, and the stricter verdict counts. Rules about names judge the name. Rules about addresses judge the
 * address: one that is denied is refused, and one that is not public is refused unless a rule names it, whatever the name was. Loopback,
 * unspecified, multicast and broadcast addresses are named by no range; an address of a metadata service by a range of that one alone.
 * Without a name the address has to be let through by itself. Names in host.pale are the host's: only a rule that opens one of its ports
 * lets them through, in mode open too. Pure, and nothing is allocated. */
#pragma once

#include <time.h>

#include "base/limits.h"
#include "net/httphead.h"
#include "policy/policy.h"

/* How much of a flow is known. */
enum egress_flow {
    EGRESS_OPENING, /* nothing yet: the verdict is the best there can be, and egress_verdict.needs_http says if it can get worse */
    EGRESS_OPAQUE,  /* TLS, or whatever is no plain HTTP: rules with methods or paths do not allow it, and deny it */
    EGRESS_HTTP,    /* one request of plain HTTP */
};

struct egress_question {
    const char *name;              /* as hostname_canon gives it; NULL: an address was dialled that no name led to */
    const struct address *address; /* that is to be dialled; NULL: not known yet, or the name is one of the host's */
    uint16_t port;
    unsigned minute; /* of the week, by egress_minute */
    enum egress_flow flow;
    struct http_text method, path; /* of EGRESS_HTTP. at is NULL for a method that a header overrides, and for a path that is not plain */
};

enum egress_ground {
    EGRESS_BY_RULE,
    EGRESS_BY_MODE,    /* no rule matches */
    EGRESS_BY_ADDRESS, /* it is not public, and no rule names it */
};

#define EGRESS_WORDS ((POLICY_LIST_MAX + 63) / 64)

struct egress_verdict {
    enum policy_verdict verdict;
    enum egress_ground ground;
    const struct policy_egress *rule; /* that decides; NULL unless EGRESS_BY_RULE */
    enum address_class class;         /* of the address, if there is one */
    bool needs_http;                  /* EGRESS_OPENING alone: ask again for each request, or as EGRESS_OPAQUE */
    uint16_t host_port;               /* not 0: dial this port of the host's loopback, and nothing else */

    /* The lowest that hold, 0: none; and a bit for every rule of the policy that counts this flow. A rate is counted for each name (or
     * address, without a name), whatever its port and rule. Bytes and connections are counted for each rule by itself: this flow counts in
     * every rule that has its bit here, and ends where the first of them is full. While the flow is opening, rules that may yet match
     * count. */
    uint64_t quota[QUOTA_COUNT];
    uint64_t counts[EGRESS_WORDS];
};

void egress_judge(const struct policy *p, const struct egress_question *q, struct egress_verdict *ret);

/* For DNS: the best verdict on this name, over all ports, requests and addresses, in this minute. */
enum policy_verdict egress_match_name(const struct policy *p, const char *name, unsigned minute);

/* The line of the policy that decided ("network.egress x.org:443", "network.mode filtered", "address private"), cut to cap with its NUL.
 * Returns ret. */
const char *egress_ground_text(const struct policy *p, const struct egress_verdict *v, char *ret, size_t cap);

static inline bool egress_counts(const struct egress_verdict *v, size_t rule)
{
    return v->counts[rule / 64] >> (rule % 64) & 1;
}

/* The minute of the week, in UTC; 0 is Monday, 00:00. */
unsigned egress_minute(time_t now);

/* Is all that child may reach within what parent may, no more of it? Looks at network.mode and network.egress. */
bool egress_within(const struct policy *parent, const struct policy *child);
