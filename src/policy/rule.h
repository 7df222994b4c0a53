/* SPDX-License-Identifier: Apache-2.0 */
/* One egress rule as text, and which rules cover or meet one another.
 *
 *   TARGET[:PORT,…][=VERDICT][@RATE][+out=SIZE][+in=SIZE][+conns=N][+time=WINDOW][+methods=M,…][+paths=P,…]
 *
 * in this order. TARGET is a name, a pattern over names, or a range of addresses with its bits, one of IPv6 in brackets: "x.org",
 * "*.x.org", "*", "10.0.0.0/8", "[fd00::/8]". A name in the zone host.pale is the host itself: such a rule has one port, which is that of
 * the host's loopback. */
#pragma once

#include "policy/policy.h"

#define RULE_HOST_ZONE "host.pale"

int rule_parse(const char *value, struct policy_egress *ret, struct pale_err *e) MUST_CHECK;
void rule_text(const struct policy_egress *r, struct buf *out);
void rule_free(struct policy_egress *r);
#define own_rule CLEANUP(rule_free) struct policy_egress

/* The order in which rules stand in a policy; 0 if they are the same. */
int rule_order(const struct policy_egress *a, const struct policy_egress *b);

const char *rule_verdict_name(enum policy_verdict v);

/* Is this name, in canonical form, one of the host's? */
bool rule_is_host_name(const char *name);

bool rule_has_port(const struct policy_egress *r, uint16_t port);

/* Does outer match whatever inner does? Verdicts and quotas do not count. A rule about names never covers one about addresses. */
bool rule_covers(const struct policy_egress *outer, const struct policy_egress *inner);

/* Can a flow that is let through by `rule` be held back by `held`? A name may lead to any address, so that a rule about addresses can
 * hold back one about names; what goes to an address without a name is held back by rules about addresses alone. */
bool rule_meets(const struct policy_egress *held, const struct policy_egress *rule);
