/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the verdict over a name, an address, a port and a request, by the policy that holds now, and what its rules count. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "confine/weaken.h"
#include "gateway/gateway.h"

static void say(struct judgement *j, enum policy_verdict v, const char *rule, const char *why)
{
    j->verdict = v;
    snprintf(j->rule, sizeof(j->rule), "%s", rule);
    snprintf(j->why, sizeof(j->why), "%s", why);
}

/* … by the same rule. */
static void refuse(struct judgement *j, const char *why)
{
    j->verdict = VERDICT_DENY;
    snprintf(j->why, sizeof(j->why), "%s", why);
}

/* Nothing passes: without a policy, with a network that is none, and when the operator has cut it off. */
static bool is_shut(const struct gateway *g, struct judgement *ret)
{
    if (g->is_cut)
        say(ret, VERDICT_DENY, "quarantine", "the operator has cut this box off; `pale quarantine --lift` opens it again");
    else if (!g->has_policy || g->policy.network == NETWORK_NONE)
        say(ret, VERDICT_DENY, "network.mode none", "the box has no network");
    else
        return false;
    return true;
}

/* Does a rule that lets this name or address through list the port? Then somebody meant whatever is spoken there. */
static bool is_port_listed(const struct gateway *g, const struct egress_question *q)
{
    for (size_t i = 0; i < g->policy.egress_count; i++) {
        const struct policy_egress *r = &g->policy.egress[i];
        bool meant = r->domain ? q->name && hostname_covers(r->domain, q->name) : q->address && address_is_in(q->address, &r->range);
        if (!meant || r->verdict == VERDICT_DENY)
            continue;
        for (size_t k = 0; k < r->port_count; k++)
            if (r->ports[k] == q->port)
                return true;
    }
    return false;
}

static void explain(const struct egress_question *q, const struct egress_verdict *v, char ret[GATE_TEXT_MAX])
{
    char what[DOMAIN_NAME_MAX + 16], text[ADDRESS_TEXT_MAX];
    const char *address = q->address ? address_text(q->address, text) : "";
    snprintf(what, sizeof(what), "%s port %u", q->name ? q->name : address, q->port);
    if (v->verdict == VERDICT_ALLOW)
        ret[0] = 0;
    else if (v->ground == EGRESS_BY_ADDRESS)
        snprintf(ret, GATE_TEXT_MAX, "%s is a %s address; only a rule for that range opens it", address, address_class_text(v->class));
    else if (v->ground == EGRESS_BY_RULE)
        snprintf(ret, GATE_TEXT_MAX, v->verdict == VERDICT_DENY ? "a rule denies %s" : "a rule asks about %s", what);
    else
        snprintf(ret, GATE_TEXT_MAX, q->name ? "no rule allows %s" : "no rule allows %s, and no allowed name leads there", what);
}

static const struct gate_answer *answer_to(const struct gateway *g, const char *host, uint16_t port)
{
    const struct gate_answer *yes = NULL;
    for (uint32_t i = 0; i < g->answer_count; i++) {
        const struct gate_answer *a = &g->answers[i];
        if (a->port != port || strcmp(a->host, host) != 0)
            continue;
        if (!a->allow)
            return a; /* of two answers the no counts */
        yes = a;
    }
    return yes;
}

/* A rule asks about this: what has the operator said? */
static void settle(const struct gateway *g, const struct egress_question *q, unsigned granted, struct judgement *j)
{
    char text[ADDRESS_TEXT_MAX] = "";
    j->asks_address = !q->name || !j->egress.rule->domain;
    const char *host = !j->asks_address ? q->name : q->address ? address_text(q->address, text) : "";
    const struct gate_answer *a = answer_to(g, host, q->port);
    if (granted & (j->asks_address ? GRANT_ADDRESS : GRANT_NAME))
        j->verdict = VERDICT_ALLOW;
    else if (a)
        say(j, a->allow ? VERDICT_ALLOW : VERDICT_DENY, "approvals", a->allow ? "" : "the operator has said no to it");
    if (j->verdict != VERDICT_ALLOW || j->asks_address || !q->address || j->egress.class == ADDRESS_PUBLIC)
        return;
    /* A yes to the name is none to a private address that has a rule of its own. */
    struct egress_question alone = *q;
    struct judgement other = {0};
    alone.name = NULL;
    egress_judge(&g->policy, &alone, &other.egress);
    if (other.egress.verdict == VERDICT_ALLOW)
        return;
    other.verdict = other.egress.verdict;
    egress_ground_text(&g->policy, &other.egress, other.rule, sizeof(other.rule));
    explain(&alone, &other.egress, other.why);
    if (other.verdict == VERDICT_ASK)
        settle(g, &alone, granted, &other);
    j->verdict = other.verdict;
    j->asks_address = true;
    say(j, other.verdict, other.rule, other.why);
}

void verdict_judge(const struct gateway *g, const struct egress_question *question, unsigned granted, struct judgement *ret)
{
    struct egress_question q = *question;
    *ret = (struct judgement){0};
    if (is_shut(g, ret))
        return;
    if (is_weak(g->weaken, WEAKEN_GATE_ADDRESS) && q.name)
        q.address = NULL;
    q.minute = egress_minute(time(NULL));
    egress_judge(&g->policy, &q, &ret->egress);
    ret->verdict = ret->egress.verdict;
    ret->is_port_listed = g->policy.network >= NETWORK_OPEN || is_port_listed(g, &q);
    egress_ground_text(&g->policy, &ret->egress, ret->rule, sizeof(ret->rule));
    explain(&q, &ret->egress, ret->why);
    if (ret->verdict == VERDICT_ASK)
        settle(g, &q, granted, ret);
    if (is_weak(g->weaken, WEAKEN_GATE_RULES)) {
        ret->verdict = VERDICT_ALLOW;
        ret->is_port_listed = true;
    }
}

void verdict_flow(const struct flow *f, bool final, struct judgement *ret)
{
    const struct egress_question q = {
        .name = f->name.len ? f->name.text : NULL,
        .address = !f->name.len             ? &f->to
                   : final && !f->host_port ? &f->at
                                            : NULL,
        .port = f->port,
        .flow = f->is_tls || f->is_other ? EGRESS_OPAQUE : EGRESS_OPENING,
    };
    verdict_judge(f->g, &q, f->granted, ret);
}

void verdict_name(const struct gateway *g, const struct hostname *name, struct judgement *ret)
{
    *ret = (struct judgement){0};
    if (is_shut(g, ret))
        return;
    enum policy_verdict v = egress_match_name(&g->policy, name->text, egress_minute(time(NULL)));
    if (is_weak(g->weaken, WEAKEN_GATE_NAMES))
        v = VERDICT_ALLOW;
    for (uint32_t i = 0; v == VERDICT_ASK && i < g->answer_count; i++)
        if (g->answers[i].allow && strcmp(g->answers[i].host, name->text) == 0)
            v = VERDICT_ALLOW;
    say(ret, v, v == VERDICT_DENY ? "network.egress" : "", v == VERDICT_DENY ? "no rule allows this name" : "");
    for (size_t i = 0; i < g->policy.egress_count; i++)
        ret->is_exact |= g->policy.egress[i].domain && strcmp(g->policy.egress[i].domain, name->text) == 0;
}

bool verdict_minds_names(const struct gateway *g)
{
    bool minds = g->policy.network < NETWORK_OPEN;
    for (size_t i = 0; i < g->policy.egress_count; i++)
        minds |= g->policy.egress[i].domain != NULL;
    return minds && !is_weak(g->weaken, WEAKEN_GATE_ECH);
}

/* --- what rules count --- */

/* Counts go with the text of a rule, so that they outlive a change of policy, and this process. */
static uint64_t hash_of(const struct gateway *g, size_t rule)
{
    struct egress_verdict v = {.ground = EGRESS_BY_RULE, .rule = &g->policy.egress[rule]};
    char text[1024];
    uint64_t hash = 0xcbf29ce484222325u;
    egress_ground_text(&g->policy, &v, text, sizeof(text));
    for (const char *p = text; *p; p++)
        hash = (hash ^ (uint8_t)*p) * 0x100000001b3u;
    return hash ? hash : 1;
}

static struct gate_rule *count_of(struct gateway *g, size_t rule)
{
    uint64_t hash = g->rule_hash[rule] ? g->rule_hash[rule] : (g->rule_hash[rule] = hash_of(g, rule));
    for (size_t i = 0; i < GATE_RULES_MAX; i++) {
        struct gate_rule *r = &g->meters->rule[(hash + i) % GATE_RULES_MAX];
        if (r->hash == 0)
            r->hash = hash;
        if (r->hash == hash)
            return r;
    }
    return NULL;
}

static bool has_quota(const struct policy_egress *r)
{
    return r->quota[QUOTA_BYTES_IN] || r->quota[QUOTA_BYTES_OUT] || r->quota[QUOTA_CONNECTIONS];
}

bool verdict_take(struct flow *f, struct judgement *j)
{
    struct gateway *g = f->g;
    uint64_t rate = j->egress.quota[QUOTA_RATE];
    int64_t minute = clock_ms() / 60000;
    struct rate *r = &g->rates[f->host];
    if (r->minute != minute)
        *r = (struct rate){.minute = minute};
    if (rate && r->count >= rate) {
        refuse(j, "more connections in a minute than the rule allows; wait a minute");
        return false;
    }
    for (size_t i = 0; i < g->policy.egress_count; i++) {
        const struct policy_egress *e = &g->policy.egress[i];
        const struct gate_rule *c = egress_counts(&j->egress, i) && has_quota(e) ? count_of(g, i) : NULL;
        const char *full = !c ? NULL
                           : e->quota[QUOTA_CONNECTIONS] && c->open >= e->quota[QUOTA_CONNECTIONS]
                               ? "more connections at once than the rule allows"
                           : e->quota[QUOTA_BYTES_OUT] && c->out >= e->quota[QUOTA_BYTES_OUT] ? "the rule's bytes out are used up"
                           : e->quota[QUOTA_BYTES_IN] && c->in >= e->quota[QUOTA_BYTES_IN]    ? "the rule's bytes in are used up"
                                                                                              : NULL;
        if (!full)
            continue;
        refuse(j, full);
        return false;
    }
    r->count++;
    verdict_count(f, j);
    return true;
}

void verdict_count(struct flow *f, const struct judgement *j)
{
    struct gateway *g = f->g;
    memcpy(f->counts, j->egress.counts, sizeof(f->counts));
    for (size_t i = 0; i < g->policy.egress_count; i++) {
        struct gate_rule *c = f->counts[i / 64] >> (i % 64) & 1 && has_quota(&g->policy.egress[i]) ? count_of(g, i) : NULL;
        if (c) {
            c->open++;
            f->is_counted = true;
        }
    }
}

/* Every rule that counts a flow. */
#define EACH_COUNT(g, f, i, c)                                                                                                             \
    for (size_t i = 0; (f)->is_counted && i < (g)->policy.egress_count; i++)                                                               \
        for (struct gate_rule *c = (f)->counts[i / 64] >> (i % 64) & 1 && has_quota(&(g)->policy.egress[i]) ? count_of(g, i) : NULL; c;    \
             c = NULL)

void verdict_give_back(struct flow *f)
{
    EACH_COUNT(f->g, f, i, c)
    if (c->open)
        c->open--;
    f->is_counted = false;
}

void verdict_spend(struct flow *f, uint64_t in, uint64_t out)
{
    EACH_COUNT(f->g, f, i, c)
    {
        c->in += in;
        c->out += out;
    }
}

uint64_t verdict_left(struct flow *f, enum policy_quota which)
{
    uint64_t left = UINT64_MAX;
    EACH_COUNT(f->g, f, i, c)
    {
        uint64_t most = f->g->policy.egress[i].quota[which], used = which == QUOTA_BYTES_IN ? c->in : c->out;
        if (most && left > (used < most ? most - used : 0))
            left = used < most ? most - used : 0;
    }
    return left;
}
