/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the question whether the network of one policy lies within that of another.
 *
 * How it works: rule by rule. What a rule of the child lets through, one rule of the parent must let through; what a rule of the parent
 * holds back there, by a refusal or a quota, the child must hold back as well. Where the rules of both interlock in a way that judging
 * them one by one cannot settle, the answer is no. A quota of bytes or connections is one count for all that its rule matches: the child
 * keeps it only if a single rule of its own counts all of that, since two rules with the same number would let twice as much through. */
#include <string.h>

#include "base/limits.h"
#include "policy/egress.h"
#include "policy/rule.h"

/* A whole range never names an address of a metadata service, so a rule that does is covered by no other. */
static bool names_more(const struct policy_egress *inner, const struct policy_egress *outer)
{
    return !inner->domain && inner->range.bits != outer->range.bits && address_class(&inner->range.first) == ADDRESS_METADATA;
}

/* Does the parent let through (as an ask, if asking is all the child does) whatever this rule of the child does? Mode open lets neither
 * ports of the host through nor addresses that are not public, and which of them are is not asked here. */
static bool is_let_through(const struct policy *parent, const struct policy_egress *rule)
{
    if (parent->network == NETWORK_HOST || (parent->network == NETWORK_OPEN && rule->domain && !rule->host_port))
        return true;
    for (size_t i = 0; i < parent->egress_count; i++) {
        const struct policy_egress *r = &parent->egress[i];
        bool enough = r->verdict == VERDICT_ALLOW || (r->verdict == VERDICT_ASK && rule->verdict == VERDICT_ASK);
        if (enough && (r->host_port || !rule->host_port) && !names_more(rule, r) && rule_covers(r, rule))
            return true;
    }
    return false;
}

static bool has_limit(const struct policy_egress *r, enum policy_quota q, const struct policy_egress *held)
{
    return r->verdict != VERDICT_DENY && r->quota[q] && r->quota[q] <= held->quota[q];
}

/* Does this rule of the child hold back as much as `held` does, be it a refusal or a rate? */
static bool holds_as_much(const struct policy_egress *r, const struct policy_egress *held)
{
    return held->verdict == VERDICT_DENY ? r->verdict == VERDICT_DENY : has_limit(r, QUOTA_RATE, held);
}

/* Does one rule of the child hold back all that this rule of the parent does? One that holds nothing back is kept. */
static bool is_kept(const struct policy *child, const struct policy_egress *held)
{
    if (held->verdict != VERDICT_DENY && !held->quota[QUOTA_RATE])
        return true;
    for (size_t i = 0; i < child->egress_count; i++)
        if (holds_as_much(&child->egress[i], held) && rule_covers(&child->egress[i], held))
            return true;
    return false;
}

/* Does this rule of the child count all that the child lets through of what `held` counts? */
static bool counts_all(const struct policy *child, const struct policy_egress *counter, const struct policy_egress *held)
{
    if (rule_covers(counter, held))
        return true;
    for (size_t i = 0; i < child->egress_count; i++) {
        const struct policy_egress *r = &child->egress[i];
        if (r->verdict != VERDICT_DENY && rule_meets(held, r) && !rule_covers(counter, r))
            return false;
    }
    return child->network < NETWORK_OPEN;
}

static bool is_counted(const struct policy *child, enum policy_quota q, const struct policy_egress *held)
{
    bool any = child->network >= NETWORK_OPEN;
    for (size_t i = 0; i < child->egress_count; i++) {
        const struct policy_egress *r = &child->egress[i];
        if (has_limit(r, q, held) && counts_all(child, r, held))
            return true;
        any |= r->verdict != VERDICT_DENY && rule_meets(held, r);
    }
    return !any;
}

static bool totals_are_kept(const struct policy *parent, const struct policy *child)
{
    static const enum policy_quota totals[] = {QUOTA_BYTES_OUT, QUOTA_BYTES_IN, QUOTA_CONNECTIONS};
    for (size_t i = 0; i < parent->egress_count; i++)
        for (size_t k = 0; k < sizeof(totals) / sizeof(totals[0]); k++)
            if (parent->egress[i].quota[totals[k]] && !is_counted(child, totals[k], &parent->egress[i]))
                return false;
    return true;
}

/* What the child itself holds back over the whole of one of its rules: a refusal as .verdict, the lowest rate. */
static struct policy_egress held_over(const struct policy *child, const struct policy_egress *rule)
{
    struct policy_egress sum = {.verdict = VERDICT_ALLOW};
    uint64_t *rate = &sum.quota[QUOTA_RATE];
    for (size_t i = 0; i < child->egress_count; i++) {
        const struct policy_egress *r = &child->egress[i];
        if (!rule_covers(r, rule))
            continue;
        if (r->verdict == VERDICT_DENY)
            sum.verdict = VERDICT_DENY;
        else if (r->quota[QUOTA_RATE] && (!*rate || r->quota[QUOTA_RATE] < *rate))
            *rate = r->quota[QUOTA_RATE];
    }
    return sum;
}

/* Is what this rule of the child lets through let through by the parent, and no more often? kept says for each rule of the
 * parent whether the child keeps it everywhere; the others must be kept where this rule meets them. */
static bool rule_within(const struct policy *parent, const bool *kept, const struct policy *child, const struct policy_egress *rule)
{
    struct policy_egress sum = held_over(child, rule);
    if (sum.verdict == VERDICT_DENY)
        return true; /* the child refuses all of it */
    if (!is_let_through(parent, rule))
        return false;
    for (size_t i = 0; i < parent->egress_count; i++)
        if (!kept[i] && rule_meets(&parent->egress[i], rule) && !holds_as_much(&sum, &parent->egress[i]))
            return false;
    return true;
}

bool egress_within(const struct policy *parent, const struct policy *child)
{
    bool kept[POLICY_LIST_MAX] = {0}, all = true;
    if (child->network == NETWORK_NONE)
        return true;
    for (size_t i = 0; i < parent->egress_count; i++)
        all &= kept[i] = is_kept(child, &parent->egress[i]);
    if (child->network >= NETWORK_OPEN && (parent->network < child->network || !all))
        return false;
    if (!totals_are_kept(parent, child))
        return false;
    for (size_t i = 0; i < child->egress_count; i++)
        if (child->egress[i].verdict != VERDICT_DENY && !rule_within(parent, kept, child, &child->egress[i]))
            return false;
    return true;
}
