/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the verdict over a name, an address and a port, by the policy that holds now. */
#include <stdio.h>
#include <string.h>

#include "confine/weaken.h"
#include "gateway/gateway.h"
#include "policy/egress.h"

static void say(struct judgement *j, enum verdict v, const char *rule, const char *why)
{
    j->verdict = v;
    snprintf(j->rule, sizeof(j->rule), "%s", rule);
    snprintf(j->why, sizeof(j->why), "%s", why);
}

static void rule_text(const struct policy_egress *r, char *ret, size_t cap)
{
    own_buf text = {0};
    buf_init(&text, GATE_TEXT_MAX);
    buf_add_text(&text, "network.egress ");
    egress_text(r, &text);
    snprintf(ret, cap, "%s", buf_text(&text));
}

/* Nothing passes: without a policy, with a network that is none, and when the operator has cut it off. */
static bool is_shut(const struct gateway *g, struct judgement *ret)
{
    if (g->is_cut)
        say(ret, VERDICT_NO, "quarantine", "the operator has cut this box off; `pale quarantine --lift` opens it again");
    else if (!g->has_policy || g->policy.network == NETWORK_NONE)
        say(ret, VERDICT_NO, "network.mode none", "the box has no network");
    else
        return false;
    return true;
}

static void by_rule(const struct policy_egress *r, const char *what, struct judgement *ret)
{
    char rule[GATE_TEXT_MAX], why[GATE_TEXT_MAX];
    rule_text(r, rule, sizeof(rule));
    snprintf(why, sizeof(why),
             r->verdict == VERDICT_DENY  ? "a rule denies %s"
             : r->verdict == VERDICT_ASK ? "a rule asks about %s"
                                         : "%s",
             what);
    say(ret, r->verdict == VERDICT_DENY ? VERDICT_NO : r->verdict == VERDICT_ASK ? VERDICT_QUESTION : VERDICT_YES, rule, why);
    ret->by_name = true;
    ret->lists_port = r->port_count > 0;
    ret->is_exact = r->domain[0] != '*';
}

void verdict_connect(const struct gateway *g, const struct hostname *name, const struct address *at, uint16_t port, struct judgement *ret)
{
    char what[GATE_TEXT_MAX], text[ADDRESS_TEXT_MAX], why[GATE_TEXT_MAX + 64];
    *ret = (struct judgement){0};
    if (is_shut(g, ret))
        return;
    snprintf(what, sizeof(what), "%s port %u", name ? name->text : address_text(at, text), port);
    const struct policy_egress *r = name ? egress_match(&g->policy, name->text, port) : NULL;
    if (is_weak(g->weaken, WEAKEN_GATE_RULES)) {
        say(ret, VERDICT_YES, "none", "weakened");
        ret->by_name = ret->lists_port = true;
    } else if (r) {
        by_rule(r, what, ret);
    } else if (g->policy.network >= NETWORK_OPEN) {
        say(ret, VERDICT_YES, "network.mode open", "");
        ret->lists_port = true;
    } else {
        snprintf(why, sizeof(why), name ? "no rule allows %s" : "no rule allows %s, and no allowed name leads there", what);
        say(ret, VERDICT_NO, "network.mode filtered", why);
    }
}

bool verdict_address(const struct gateway *g, const struct address *at, struct judgement *ret)
{
    enum address_class c = address_class(at);
    char text[ADDRESS_TEXT_MAX], why[GATE_TEXT_MAX];
    if (c == ADDRESS_PUBLIC || is_weak(g->weaken, WEAKEN_GATE_ADDRESS))
        return true;
    snprintf(why, sizeof(why), "%s is a %s address; a cidr rule can open it", address_text(at, text), address_class_text(c));
    say(ret, VERDICT_NO, "private addresses", why);
    return false;
}

void verdict_name(const struct gateway *g, const struct hostname *name, struct judgement *ret)
{
    *ret = (struct judgement){0};
    if (is_shut(g, ret))
        return;
    const struct policy_egress *best = NULL;
    enum verdict v = g->policy.network >= NETWORK_OPEN ? VERDICT_YES : VERDICT_NO;
    for (size_t i = 0; i < g->policy.egress_count; i++) {
        const struct policy_egress *r = &g->policy.egress[i];
        if (!hostname_covers(r->domain, name->text))
            continue;
        if (r->verdict == VERDICT_DENY && r->port_count == 0) {
            by_rule(r, name->text, ret);
            return;
        }
        if (r->verdict == VERDICT_ALLOW || (r->verdict == VERDICT_ASK && v == VERDICT_NO)) {
            v = r->verdict == VERDICT_ALLOW ? VERDICT_YES : VERDICT_QUESTION;
            best = r;
        }
    }
    if (is_weak(g->weaken, WEAKEN_GATE_NAMES))
        v = VERDICT_YES;
    if (best)
        by_rule(best, name->text, ret);
    else
        say(ret, v, v == VERDICT_NO ? "network.mode filtered" : "network.mode open", v == VERDICT_NO ? "no rule allows this name" : "");
}
