/* SPDX-License-Identifier: Apache-2.0 */
/* Egress rules: which of them decides over a name and a port.
 *
 * The order of rules has no meaning. A deny that matches always wins; else an allow; else an ask; else the network mode
 * decides (filtered: no, open and host: yes). So adding an allow can only widen a policy and adding a deny only narrow it. */
#pragma once

#include "policy/policy.h"

/* The rule that decides, the most particular one if several say the same; NULL if no rule matches. name is in the form
 * domain_parse gives. */
const struct policy_egress *egress_match(const struct policy *p, const char *name, uint16_t port);

/* The lowest of the rates per minute (for each name) of the rules that let this through; 0: none. */
uint32_t egress_rate(const struct policy *p, const char *name, uint16_t port);

/* Is all that child may reach within what parent may, no more often? Looks at network.mode and network.egress. */
bool egress_within(const struct policy *parent, const struct policy *child);

/* A rule as policy_set takes it. */
void egress_text(const struct policy_egress *r, struct buf *out);
