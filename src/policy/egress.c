/* SPDX-License-Identifier: Apache-2.0 */
/* Owns egress rules: DOMAIN[:PORT[,PORT…]][=VERDICT][@RATE], as in "*.debian.org:80,443", "x.org=ask", "api.x.org:443@60".
 *
 * How it works: the text may be hostile; a rule is parsed once into lower-case labels and sorted ports, and only that form is
 * compared. Two patterns either have no name in common or one covers the other, which makes "within" decidable rule by rule;
 * where the rules of a parent and a child interlock in a way that rule-by-rule judgement cannot settle, the answer is no. */
#include "policy/egress.h"

#include <string.h>

#include "base/limits.h"
#include "base/number.h"
#include "base/quote.h"
#include "net/hostname.h"
#include "policy/domain.h"
#include "policy/field.h"

static const char *const verdict_names[] = {[VERDICT_ALLOW] = "allow", [VERDICT_ASK] = "ask", [VERDICT_DENY] = "deny"};

static void rule_free(struct policy_egress *r)
{
    free(r->domain);
    free(r->ports);
    *r = (struct policy_egress){0};
}

void egress_text(const struct policy_egress *r, struct buf *out)
{
    buf_add_text(out, r->domain);
    for (size_t i = 0; i < r->port_count; i++)
        buf_addf(out, "%c%u", i ? ',' : ':', r->ports[i]);
    if (r->verdict != VERDICT_ALLOW)
        buf_addf(out, "=%s", verdict_names[r->verdict]);
    if (r->rate_per_min)
        buf_addf(out, "@%u", r->rate_per_min);
}

static int add_port(struct policy_egress *r, const char *text, size_t len, struct pale_err *e)
{
    char one[8] = {0}, shown[40];
    uint64_t v = 0;
    memcpy(one, text, len < sizeof(one) ? len : 0);
    if (!number_u64(one, 65535, &v) || v == 0)
        return err_set(e, PALE_BAD_INPUT, "\"%s\" is no port; ports go from 1 to 65535", quote_into(shown, sizeof(shown), text, len));
    size_t at = 0;
    while (at < r->port_count && r->ports[at] < v)
        at++;
    if (at < r->port_count && r->ports[at] == v)
        return 0;
    if (r->port_count >= EGRESS_PORTS_MAX)
        return err_set(e, PALE_LIMIT, "a rule has more than %d ports; leave them out to allow all", EGRESS_PORTS_MAX);
    uint16_t *grown = realloc(r->ports, (r->port_count + 1) * sizeof(*grown));
    if (!grown)
        return err_nomem(e);
    r->ports = grown;
    memmove(grown + at + 1, grown + at, (r->port_count - at) * sizeof(*grown));
    grown[at] = (uint16_t)v;
    r->port_count++;
    return 0;
}

/* s stands on the ':' and len covers up to the next mark. */
static int parse_ports(struct policy_egress *r, const char *s, size_t len, struct pale_err *e)
{
    const char *end = s + len;
    for (s++;; s++) {
        size_t n = strcspn(s, ",=@");
        int ret = add_port(r, s, n, e);
        if (ret < 0)
            return ret;
        s += n;
        if (s == end)
            return 0;
    }
}

static int parse_verdict(struct policy_egress *r, const char *s, size_t len, struct pale_err *e)
{
    char shown[40];
    for (unsigned v = 0; v < VERDICT_COUNT; v++)
        if (strlen(verdict_names[v]) == len - 1 && memcmp(verdict_names[v], s + 1, len - 1) == 0) {
            r->verdict = v;
            return 0;
        }
    return err_set(e, PALE_BAD_INPUT, "\"%s\" is not allow, ask or deny", quote_into(shown, sizeof(shown), s + 1, len - 1));
}

static int parse_rate(struct policy_egress *r, const char *s, size_t len, struct pale_err *e)
{
    char one[12] = {0}, shown[40];
    uint64_t v = 0;
    memcpy(one, s + 1, len <= sizeof(one) ? len - 1 : 0);
    if (!number_u64(one, 1000000, &v) || v == 0)
        return err_set(e, PALE_BAD_INPUT, "\"%s\" is no rate; it goes from 1 to 1000000 a minute",
                       quote_into(shown, sizeof(shown), s + 1, len - 1));
    r->rate_per_min = (uint32_t)v;
    return 0;
}

/* The parts after the domain, each at most once and in this order. */
static const struct part {
    char mark;
    const char *ends;
    int (*parse)(struct policy_egress *r, const char *s, size_t len, struct pale_err *e);
} parts[] = {{':', "=@", parse_ports}, {'=', "@", parse_verdict}, {'@', "", parse_rate}};

static int parse(const char *value, struct policy_egress *ret, struct pale_err *e)
{
    CLEANUP(rule_free) struct policy_egress r = {0};
    char name[DOMAIN_NAME_MAX + 1], shown[200];
    size_t n = strcspn(value, ":=@");
    int ret_code = domain_parse(value, n, true, name, e);
    if (ret_code < 0)
        return ret_code;
    r.domain = strdup(name);
    if (!r.domain)
        return err_nomem(e);
    const char *s = value + n;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (*s != parts[i].mark)
            continue;
        n = strcspn(s, parts[i].ends);
        ret_code = parts[i].parse(&r, s, n, e);
        if (ret_code < 0)
            return ret_code;
        s += n;
    }
    quote_into(shown, sizeof(shown), value, strlen(value));
    if (*s)
        return err_set(e, PALE_BAD_INPUT, "\"%s\" is not DOMAIN[:PORT,…][=allow|ask|deny][@RATE]", shown);
    if (strcmp(name, "*") == 0 && r.verdict == VERDICT_ALLOW)
        return err_set(e, PALE_BAD_INPUT, "\"%s\" allows every name; write network: open if that is meant", shown);
    *ret = r;
    r = (struct policy_egress){0};
    return 0;
}

static int order(const struct policy_egress *a, const struct policy_egress *b)
{
    int r = strcmp(a->domain, b->domain);
    if (r == 0)
        r = (int)a->verdict - (int)b->verdict;
    if (r == 0 && a->rate_per_min != b->rate_per_min)
        r = a->rate_per_min < b->rate_per_min ? -1 : 1;
    for (size_t i = 0; r == 0 && i < a->port_count && i < b->port_count; i++)
        r = (int)a->ports[i] - (int)b->ports[i];
    if (r == 0 && a->port_count != b->port_count)
        r = a->port_count < b->port_count ? -1 : 1;
    return r;
}

static int egress_set(const struct field *f, struct policy *p, const char *value, struct pale_err *e)
{
    CLEANUP(rule_free) struct policy_egress rule = {0};
    (void)f;
    int r = parse(value, &rule, e);
    if (r < 0)
        return r;
    size_t at = 0;
    while (at < p->egress_count && order(&p->egress[at], &rule) < 0)
        at++;
    if (at < p->egress_count && order(&p->egress[at], &rule) == 0)
        return 0;
    if (p->egress_count >= POLICY_LIST_MAX)
        return err_set(e, PALE_LIMIT, "there are more than %d rules; use patterns such as *.example.org", POLICY_LIST_MAX);
    struct policy_egress *grown = realloc(p->egress, (p->egress_count + 1) * sizeof(*grown));
    if (!grown)
        return err_nomem(e);
    p->egress = grown;
    memmove(grown + at + 1, grown + at, (p->egress_count - at) * sizeof(*grown));
    grown[at] = rule;
    p->egress_count++;
    rule = (struct policy_egress){0};
    return 0;
}

static bool has_port(const struct policy_egress *r, uint16_t port)
{
    for (size_t i = 0; i < r->port_count; i++)
        if (r->ports[i] == port)
            return true;
    return r->port_count == 0;
}

/* deny before allow before ask. */
static int rank(enum policy_verdict v)
{
    return v == VERDICT_DENY ? 2 : v == VERDICT_ALLOW ? 1 : 0;
}

const struct policy_egress *egress_match(const struct policy *p, const char *name, uint16_t port)
{
    const struct policy_egress *best = NULL;
    for (size_t i = 0; i < p->egress_count; i++) {
        const struct policy_egress *r = &p->egress[i];
        if (!hostname_covers(r->domain, name) || !has_port(r, port))
            continue;
        bool better =
            !best || rank(r->verdict) > rank(best->verdict) || (r->verdict == best->verdict && strlen(r->domain) > strlen(best->domain));
        if (better)
            best = r;
    }
    return best;
}

uint32_t egress_rate(const struct policy *p, const char *name, uint16_t port)
{
    uint32_t least = 0;
    for (size_t i = 0; i < p->egress_count; i++) {
        const struct policy_egress *r = &p->egress[i];
        bool counts = r->verdict != VERDICT_DENY && r->rate_per_min && hostname_covers(r->domain, name) && has_port(r, port);
        if (counts && (least == 0 || r->rate_per_min < least))
            least = r->rate_per_min;
    }
    return least;
}

static bool ports_cover(const struct policy_egress *outer, const struct policy_egress *inner)
{
    if (outer->port_count == 0)
        return true;
    for (size_t i = 0; i < inner->port_count; i++)
        if (!has_port(outer, inner->ports[i]))
            return false;
    return inner->port_count > 0;
}

static bool rule_covers(const struct policy_egress *outer, const struct policy_egress *inner)
{
    return hostname_covers(outer->domain, inner->domain) && ports_cover(outer, inner);
}

static bool rules_meet(const struct policy_egress *a, const struct policy_egress *b)
{
    if (!hostname_covers(a->domain, b->domain) && !hostname_covers(b->domain, a->domain))
        return false;
    for (size_t i = 0; i < a->port_count; i++)
        if (has_port(b, a->ports[i]))
            return true;
    return a->port_count == 0 || b->port_count == 0;
}

/* Does the parent let through (as an ask, if asking is all the child does) whatever this rule of the child does? */
static bool is_let_through(const struct policy *parent, const struct policy_egress *rule)
{
    if (parent->network >= NETWORK_OPEN)
        return true;
    for (size_t i = 0; i < parent->egress_count; i++) {
        const struct policy_egress *r = &parent->egress[i];
        bool enough = r->verdict == VERDICT_ALLOW || (r->verdict == VERDICT_ASK && rule->verdict == VERDICT_ASK);
        if (enough && rule_covers(r, rule))
            return true;
    }
    return false;
}

/* Does this rule of the child hold back as much as `held` does, be it a refusal or a rate? */
static bool holds_as_much(const struct policy_egress *r, const struct policy_egress *held)
{
    if (held->verdict == VERDICT_DENY)
        return r->verdict == VERDICT_DENY;
    return r->verdict != VERDICT_DENY && r->rate_per_min && r->rate_per_min <= held->rate_per_min;
}

/* Does one rule of the child hold back all that this rule of the parent does? One that holds nothing back is kept. */
static bool is_kept(const struct policy *child, const struct policy_egress *held)
{
    if (held->verdict != VERDICT_DENY && !held->rate_per_min)
        return true;
    for (size_t i = 0; i < child->egress_count; i++)
        if (holds_as_much(&child->egress[i], held) && rule_covers(&child->egress[i], held))
            return true;
    return false;
}

/* What the child itself holds back over the whole of one of its rules: a refusal as .verdict, the lowest rate. */
static struct policy_egress held_over(const struct policy *child, const struct policy_egress *rule)
{
    struct policy_egress sum = {.verdict = VERDICT_ALLOW};
    for (size_t i = 0; i < child->egress_count; i++) {
        const struct policy_egress *r = &child->egress[i];
        if (!rule_covers(r, rule))
            continue;
        if (r->verdict == VERDICT_DENY)
            sum.verdict = VERDICT_DENY;
        else if (r->rate_per_min && (!sum.rate_per_min || r->rate_per_min < sum.rate_per_min))
            sum.rate_per_min = r->rate_per_min;
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
        if (!kept[i] && rules_meet(&parent->egress[i], rule) && !holds_as_much(&sum, &parent->egress[i]))
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
    if (child->network >= NETWORK_OPEN)
        return parent->network >= child->network && all;
    for (size_t i = 0; i < child->egress_count; i++)
        if (child->egress[i].verdict != VERDICT_DENY && !rule_within(parent, kept, child, &child->egress[i]))
            return false;
    return true;
}

static size_t egress_count(const struct field *f, const struct policy *p)
{
    (void)f;
    return p->egress_count;
}

static void rule_text(const struct field *f, const struct policy *p, size_t i, struct buf *out)
{
    (void)f;
    egress_text(&p->egress[i], out);
}

static bool rules_within(const struct field *f, const struct policy *parent, const struct policy *child)
{
    (void)f;
    return egress_within(parent, child);
}

static int rule_weight(const struct field *f, const struct policy *p, size_t i)
{
    (void)f;
    return p->egress[i].verdict == VERDICT_DENY ? -1 : 1;
}

static void rule_json(const struct field *f, const struct policy *p, size_t i, struct json *j, const char *key)
{
    const struct policy_egress *r = &p->egress[i];
    (void)f;
    json_begin_object(j, key);
    json_text(j, "domain", r->domain);
    json_begin_list(j, "ports");
    for (size_t k = 0; k < r->port_count; k++)
        json_u64(j, NULL, r->ports[k]);
    json_end_list(j);
    if (r->rate_per_min)
        json_u64(j, "rate_limit_per_min", r->rate_per_min);
    json_text(j, "verdict", verdict_names[r->verdict]);
    json_end_object(j);
}

static void egress_done(const struct field *f, struct policy *p)
{
    (void)f;
    for (size_t i = 0; i < p->egress_count; i++)
        rule_free(&p->egress[i]);
    free(p->egress);
}

const struct field_kind egress_kind = {.shape = SHAPE_RULES,
                                       .count = egress_count,
                                       .text = rule_text,
                                       .set = egress_set,
                                       .within = rules_within,
                                       .weight = rule_weight,
                                       .json = rule_json,
                                       .done = egress_done};
