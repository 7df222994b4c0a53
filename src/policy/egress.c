/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the verdict on a flow. */
#include "policy/egress.h"

#include <stdio.h>
#include <string.h>

#include "net/hostname.h"
#include "policy/plainhttp.h"
#include "policy/rule.h"
#include "policy/window.h"

#define THURSDAY_MINUTES (3u * 1440u) /* the epoch was one, and weeks begin on Monday */

unsigned egress_minute(time_t now)
{
    return (unsigned)(((uint64_t)now / 60 + THURSDAY_MINUTES) % WEEK_MINUTES);
}

/* How a rule stands to a question: not at all, only if the requests are such as it means, or in any case. */
enum fit { FIT_NONE, FIT_MAYBE, FIT_SURE };

static enum fit fit_http(const struct policy_egress *r, const struct egress_question *q)
{
    static const struct http_text nothing = {0};
    bool is_request = q->flow == EGRESS_HTTP, deny = r->verdict == VERDICT_DENY;
    if (!plainhttp_is_asked(r))
        return FIT_SURE;
    if (q->flow == EGRESS_OPENING)
        return FIT_MAYBE;
    return plainhttp_matches(r, is_request ? &q->method : &nothing, is_request ? &q->path : &nothing, deny) ? FIT_SURE : FIT_NONE;
}

static enum fit fit(const struct policy_egress *r, const struct egress_question *q)
{
    bool target = r->domain ? q->name && hostname_covers(r->domain, q->name) : q->address && address_is_in(q->address, &r->range);
    return target && rule_has_port(r, q->port) && window_holds(&r->window, q->minute) ? fit_http(r, q) : FIT_NONE;
}

/* deny before allow before ask. */
static int rank(const struct policy_egress *r)
{
    return !r ? 0 : r->verdict == VERDICT_DENY ? 3 : r->verdict == VERDICT_ALLOW ? 2 : 1;
}

/* The more particular of two rules that say the same is the one to tell. */
static bool is_nearer(const struct policy_egress *a, const struct policy_egress *b)
{
    return a->domain && b->domain ? hostname_covers(b->domain, a->domain) : a->range.bits > b->range.bits;
}

static void prefer(const struct policy_egress **best, const struct policy_egress *r)
{
    if (rank(r) > rank(*best) || (*best && rank(r) == rank(*best) && is_nearer(r, *best)))
        *best = r;
}

/* What the rules about names, or those about addresses, say. */
struct side {
    const struct policy_egress *sure, *maybe; /* the best of each; maybe is no deny */
    bool may_deny;
    bool open;   /* what no rule matches is let through */
    bool needed; /* somebody has to let it through */
};

/* May this rule let the question through, or only hold it back? */
static bool can_permit(const struct policy_egress *r, const struct egress_question *q, enum address_class class)
{
    if (r->domain)
        return r->host_port || !rule_is_host_name(q->name);
    switch (class) {
    case ADDRESS_LOOPBACK:
    case ADDRESS_UNSPECIFIED:
    case ADDRESS_MULTICAST:
    case ADDRESS_BROADCAST:
        return false;
    case ADDRESS_METADATA:
        return r->range.bits == (r->range.first.family == ADDRESS_V4 ? 32 : 128);
    default:
        return true;
    }
}

static void take(struct side *s, const struct policy_egress *r, enum fit f)
{
    if (f == FIT_MAYBE && r->verdict == VERDICT_DENY)
        s->may_deny = true;
    else
        prefer(f == FIT_SURE ? &s->sure : &s->maybe, r);
}

static void count(struct egress_verdict *v, const struct policy_egress *r, size_t index)
{
    v->counts[index / 64] |= UINT64_C(1) << (index % 64);
    for (size_t i = 0; i < QUOTA_COUNT; i++)
        if (r->quota[i] && (!v->quota[i] || r->quota[i] < v->quota[i]))
            v->quota[i] = r->quota[i];
}

/* The verdict of one side: by a rule, or by what holds without one. An ask does not take back what is open anyway. */
static enum policy_verdict settle(const struct side *s, const struct policy_egress **ret_rule, bool *ret_depends)
{
    const struct policy_egress *base = s->sure, *best;
    enum policy_verdict open = s->open || !s->needed ? VERDICT_ALLOW : VERDICT_DENY;
    if (base && base->verdict == VERDICT_ASK && open == VERDICT_ALLOW)
        base = NULL;
    best = base;
    if (s->maybe && rank(s->maybe) > rank(base) && (base || open == VERDICT_DENY))
        best = s->maybe;
    *ret_rule = best;
    *ret_depends = best != base || (s->may_deny && rank(base) < 3);
    return best ? best->verdict : open;
}

/* How little a verdict lets through. */
static int strictness(enum policy_verdict v)
{
    return v == VERDICT_DENY ? 2 : v == VERDICT_ASK ? 1 : 0;
}

static bool is_fixed(const struct policy *p, struct egress_verdict *v)
{
    v->ground = EGRESS_BY_MODE;
    v->verdict = p->network == NETWORK_HOST ? VERDICT_ALLOW : VERDICT_DENY;
    return p->network == NETWORK_HOST || p->network == NETWORK_NONE;
}

void egress_judge(const struct policy *p, const struct egress_question *q, struct egress_verdict *ret)
{
    struct egress_verdict v = {.class = q->address ? address_class(q->address) : ADDRESS_PUBLIC};
    bool open = p->network == NETWORK_OPEN, is_public = v.class == ADDRESS_PUBLIC, depends[2];
    struct side names = {.open = open && q->name && !rule_is_host_name(q->name), .needed = q->name != NULL};
    struct side addresses = {.open = open && q->address && is_public, .needed = !q->name || (q->address && !is_public)};
    const struct policy_egress *by_name, *by_address;
    *ret = v;
    if (is_fixed(p, ret))
        return;
    for (size_t i = 0; i < p->egress_count; i++) {
        const struct policy_egress *r = &p->egress[i];
        enum fit f = fit(r, q);
        if (f == FIT_NONE)
            continue;
        if (r->verdict != VERDICT_DENY)
            count(&v, r, i);
        if (r->verdict == VERDICT_DENY || can_permit(r, q, v.class))
            take(r->domain ? &names : &addresses, r, f);
    }
    enum policy_verdict of_name = settle(&names, &by_name, &depends[0]), of_address = settle(&addresses, &by_address, &depends[1]);
    bool address_decides = !q->name || strictness(of_address) > strictness(of_name);
    v.verdict = address_decides ? of_address : of_name;
    v.rule = address_decides ? by_address : by_name;
    v.ground = v.rule ? EGRESS_BY_RULE : address_decides && !is_public ? EGRESS_BY_ADDRESS : EGRESS_BY_MODE;
    v.needs_http = (depends[0] || depends[1]) && v.verdict != VERDICT_DENY;
    v.host_port = by_name && v.verdict != VERDICT_DENY ? by_name->host_port : 0;
    *ret = v;
}

enum policy_verdict egress_match_name(const struct policy *p, const char *name, unsigned minute)
{
    const struct policy_egress *best = NULL;
    struct egress_verdict fixed;
    bool host = rule_is_host_name(name);
    if (is_fixed(p, &fixed))
        return fixed.verdict;
    for (size_t i = 0; i < p->egress_count; i++) {
        const struct policy_egress *r = &p->egress[i];
        if (!r->domain || !hostname_covers(r->domain, name) || !window_holds(&r->window, minute))
            continue;
        /* A deny of some ports or requests leaves the others. */
        if (r->verdict == VERDICT_DENY && r->port_count == 0 && !plainhttp_is_asked(r))
            return VERDICT_DENY;
        if (r->verdict != VERDICT_DENY && (r->host_port || !host))
            prefer(&best, r);
    }
    if (p->network == NETWORK_OPEN && !host)
        return VERDICT_ALLOW;
    return best ? best->verdict : VERDICT_DENY;
}

const char *egress_ground_text(const struct policy *p, const struct egress_verdict *v, char *ret, size_t cap)
{
    struct buf b;
    /* A rule that does not fit is cut, so that nothing has to be allocated for it. */
    char text[4096];
    if (v->ground == EGRESS_BY_RULE) {
        buf_init_lent(&b, sizeof(text) - 1, text, sizeof(text) - 1);
        rule_text(v->rule, &b);
        text[b.len] = 0;
        snprintf(ret, cap, "network.egress %s%s", text, b.failed ? "…" : "");
    } else if (v->ground == EGRESS_BY_ADDRESS) {
        snprintf(ret, cap, "address %s", address_class_text(v->class));
    } else {
        snprintf(ret, cap, "network.mode %s", policy_network_name(p->network));
    }
    return ret;
}
