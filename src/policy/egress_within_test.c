/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for policy/egress_within, and the property that holds it: whatever is asked, a child within its parent lets no more through. */
#include "policy/policy_test.h"

#include <stdio.h>

#include "policy/egress.h"
#include "policy/rule.h"

#define RULES_MOST 4

static void within_judges_every_part_of_a_rule(void **state)
{
    (void)state;
    static const struct {
        const char *parent[2], *child[3];
        bool within;
    } cases[] = {
        {{"10.0.0.0/8"}, {"10.1.0.0/16:80"}, true},
        {{"10.1.0.0/16"}, {"10.0.0.0/8"}, false},
        {{"10.0.0.0/8"}, {"10.1.2.3/32=ask"}, true},
        {{"10.0.0.0/8"}, {"[fd00::/8]"}, false},
        {{"x.org"}, {"10.0.0.0/8"}, false},
        {{"169.254.0.0/16"}, {"169.254.169.254/32"}, false},
        {{"169.254.169.254/32"}, {"169.254.169.254/32:80"}, true},
        {{"x.org", "10.0.0.0/8=deny"}, {"x.org"}, false},
        {{"x.org", "10.0.0.0/8=deny"}, {"x.org", "10.0.0.0/8=deny"}, true},
        {{"x.org", "10.0.0.0/8:25=deny"}, {"x.org:443"}, true},
        {{"a.host.pale:80"}, {"a.host.pale:80"}, true},
        {{"a.host.pale:80"}, {"a.host.pale:80=ask"}, true},
        {{"a.host.pale:80"}, {"a.host.pale:81"}, false},
        {{"a.host.pale:80"}, {"b.host.pale:80"}, false},
        {{"*.pale"}, {"a.host.pale:80"}, false},
        {{"a.host.pale:80", "10.0.0.0/8=deny"}, {"a.host.pale:80"}, true},
        {{"x.org"}, {"x.org+time=mon/08:00-09:00"}, true},
        {{"x.org+time=mon-fri/08:00-18:00"}, {"x.org+time=tue/08:00-09:00"}, true},
        {{"x.org+time=mon-fri/08:00-18:00"}, {"x.org+time=sat/08:00-09:00"}, false},
        {{"x.org+time=mon-fri/08:00-18:00"}, {"x.org"}, false},
        {{"x.org", "x.org=deny+time=sat/00:00-24:00"}, {"x.org"}, false},
        {{"x.org", "x.org=deny+time=sat/00:00-24:00"}, {"x.org+time=mon/00:00-24:00"}, true},
        {{"x.org:80"}, {"x.org:80+methods=GET"}, true},
        {{"x.org:80+methods=GET,HEAD"}, {"x.org:80+methods=GET+paths=/a"}, true},
        {{"x.org:80+methods=GET"}, {"x.org:80"}, false},
        {{"x.org:80+methods=GET"}, {"x.org:80+methods=GET,POST"}, false},
        {{"x.org:80+paths=/a/*"}, {"x.org:80+paths=/a/b,/a/c/*"}, true},
        {{"x.org:80+paths=/a/*"}, {"x.org:80+paths=/a"}, false},
        {{"x.org:80+paths=/a/b"}, {"x.org:80+paths=/a/*"}, false},
        {{"x.org:80", "x.org:80=deny+methods=POST"}, {"x.org:80"}, false},
        {{"x.org:80", "x.org:80=deny+methods=POST"}, {"x.org:80+methods=GET"}, true},
        {{"x.org:80", "x.org:80=deny+methods=POST"}, {"x.org:80", "x.org:80=deny+methods=POST,PUT"}, true},
        {{"x.org+out=10"}, {"x.org+out=10"}, true},
        {{"x.org+out=10"}, {"x.org+out=11"}, false},
        {{"x.org+out=10"}, {"x.org"}, false},
        {{"x.org+out=10"}, {"x.org+in=10"}, false},
        {{"*.x.org+out=10"}, {"a.x.org+out=10"}, true},
        {{"*.x.org+out=10"}, {"a.x.org+out=10", "b.x.org+out=10"}, false},
        {{"*.x.org+conns=10"}, {"a.x.org+conns=5", "b.x.org+conns=5"}, false},
        {{"*.x.org+out=10"}, {"a.x.org", "b.x.org", "*.x.org=ask+out=10"}, true},
        {{"*.x.org+out=10"}, {"a.x.org", "b.x.org", "*.x.org+out=10"}, true},
        {{"x.org+out=10"}, {"x.org:80+out=10", "x.org:443+out=10"}, false},
        {{"x.org", "1.0.0.0/8+out=10"}, {"x.org"}, false},
        {{"x.org", "1.0.0.0/8+out=10"}, {"x.org+out=5"}, true},
        {{"x.org", "y.org+out=10"}, {"x.org"}, true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        own_policy p = POLICY("network", "filtered"), q = POLICY("network", "filtered");
        for (size_t k = 0; k < 3; k++) {
            if (k < 2 && cases[i].parent[k])
                set(&p, "network.egress", cases[i].parent[k]);
            if (cases[i].child[k])
                set(&q, "network.egress", cases[i].child[k]);
        }
        if (egress_within(&p, &q) != cases[i].within)
            fail_msg("case %zu: %s -> %s", i, cases[i].parent[0], cases[i].child[0]);
    }
}

static void within_holds_a_child_of_an_open_parent(void **state)
{
    (void)state;
    own_policy open = POLICY("network", "open"), named = POLICY("network", "open", "network.egress", "10.0.0.0/8");
    own_policy a = POLICY("network", "filtered", "network.egress", "x.org"), b = POLICY("network", "open", "network.egress", "10.0.0.0/8");
    own_policy c = POLICY("network", "filtered", "network.egress", "db.host.pale:1"), host = POLICY("network", "host");
    assert_true(egress_within(&open, &a));
    assert_false(egress_within(&open, &b));
    assert_true(egress_within(&named, &b));
    assert_false(egress_within(&open, &c));
    assert_true(egress_within(&host, &b) && egress_within(&host, &c));
    set(&named, "network.egress", "x.org+out=10");
    assert_false(egress_within(&named, &b));
    set(&b, "network.egress", "x.org+out=9");
    assert_true(egress_within(&named, &b));
}

/* --- the property --- */

static const char *const targets[] = {"x.org",        "*.x.org",    "a.x.org",     "*.a.x.org",      "*",          "*.host.pale",
                                      "db.host.pale", "10.0.0.0/8", "10.1.0.0/16", "169.254.0.0/16", "8.8.0.0/16", "169.254.169.254/32",
                                      "[fd00::/8]",   "*.pale"};
static const char *const ports[] = {"", "", ":80", ":80,8080", ":443", ":80,443"};
static const char *const verdicts[] = {"", "", "", "=ask", "=deny"};
static const char *const quotas[] = {"", "", "", "", "@5", "@9", "+out=5", "+out=9", "+in=5", "+conns=5", "+conns=9", "@5+out=9+in=9"};
static const char *const times[] = {"", "", "", "", "+time=mon-fri/08:00-18:00", "+time=mon/08:00-12:00", "+time=sun/00:00-24:00"};
static const char *const requests[] = {"", "", "", "+methods=GET", "+methods=GET,POST", "+paths=/a/*", "+methods=GET+paths=/a/b"};
#define ANY(seed, list) (list)[dice(seed, sizeof(list) / sizeof((list)[0]))]

/* A rule that can be parsed; most texts that the dice give can. */
static void some_rule(uint64_t *seed, struct policy *p)
{
    for (;;) {
        char text[200];
        struct pale_err e = {0};
        snprintf(text, sizeof(text), "%s%s%s%s%s%s", ANY(seed, targets), ANY(seed, ports), ANY(seed, verdicts), ANY(seed, quotas),
                 ANY(seed, times), ANY(seed, requests));
        if (policy_set(p, "network.egress", text, &e) == 0)
            return;
    }
}

/* Most children that were made apart from their parents are wider at once: so they take some of the rules over. */
static void take_over(uint64_t *seed, const struct policy *from, struct policy *to)
{
    for (size_t i = 0; i < from->egress_count; i++) {
        own_buf text = {0};
        if (dice(seed, 4) == 0)
            continue;
        buf_init(&text, 1024);
        rule_text(&from->egress[i], &text);
        set(to, "network.egress", buf_text(&text));
    }
}

#define QUESTIONS (8u * 7 * 3 * 3 * 6)

/* Question i; false if there is none such. */
static bool question(unsigned i, struct address *mem, struct egress_question *ret)
{
    static const char *const names[] = {"x.org", "a.x.org", "b.a.x.org", "y.org", "db.host.pale", "x.host.pale", "a.pale", NULL};
    static const char *const addresses[] = {NULL, "8.8.8.8", "1.1.1.1", "10.1.2.3", "10.2.2.3", "169.254.169.254", "fd00::1"};
    static const uint16_t port[] = {80, 443, 8080};
    static const unsigned minutes[] = {9 * 60, 1440 + 13 * 60, 6 * 1440 + 60};
    static const struct {
        enum egress_flow flow;
        const char *method, *path;
    } flows[] = {{EGRESS_OPENING, NULL, NULL},  {EGRESS_OPAQUE, NULL, NULL}, {EGRESS_HTTP, "GET", "/a/b"},
                 {EGRESS_HTTP, "POST", "/a/c"}, {EGRESS_HTTP, "FROB", "/b"}, {EGRESS_HTTP, "GET", NULL}};
    const char *name = names[i % 8], *address = addresses[i / 8 % 7], *method, *path;
    unsigned f = i / (8 * 7 * 3 * 3) % 6;
    method = flows[f].method, path = flows[f].path;
    if ((!name && !address) || (address && name && rule_is_host_name(name)))
        return false;
    if (address)
        assert_true(address_parse(address, strlen(address), mem));
    *ret = (struct egress_question){.name = name,
                                    .address = address ? mem : NULL,
                                    .port = port[i / 56 % 3],
                                    .minute = minutes[i / 168 % 3],
                                    .flow = flows[f].flow,
                                    .method = {method, method ? strlen(method) : 0},
                                    .path = {path, path ? strlen(path) : 0}};
    return true;
}

static int reach_of(enum policy_verdict v)
{
    return v == VERDICT_ALLOW ? 2 : v == VERDICT_ASK ? 1 : 0;
}

static void add_rules(const struct policy *p, struct buf *out)
{
    buf_addf(out, "\n%s", policy_network_name(p->network));
    for (size_t i = 0; i < p->egress_count; i++) {
        buf_add_text(out, " ");
        rule_text(&p->egress[i], out);
    }
}

static void complain_of(const struct policy *p, const struct policy *q, unsigned i, const char *what)
{
    own_buf text = {0};
    buf_init(&text, 65536);
    add_rules(p, &text);
    add_rules(q, &text);
    fail_msg("question %u: %s%s", i, what, buf_text(&text));
}

/* Every total of the parent is kept by one rule of the child that counts all that the child lets through of it. */
struct totals {
    bool can_count[POLICY_LIST_MAX]; /* by rule of the child: so far it counted everything that the parent's rule did */
    bool any;
};

static void follow_totals(struct totals *t, size_t rule, const struct policy *q, const struct egress_verdict *a,
                          const struct egress_verdict *b)
{
    if (b->verdict == VERDICT_DENY || !egress_counts(a, rule))
        return;
    t->any = true;
    for (size_t i = 0; i < q->egress_count; i++)
        t->can_count[i] &= egress_counts(b, i);
}

static void assert_totals(const struct totals *t, const struct policy_egress *held, const struct policy *p, const struct policy *q)
{
    for (size_t k = QUOTA_BYTES_OUT; t->any && k < QUOTA_COUNT; k++) {
        bool kept = !held->quota[k];
        for (size_t i = 0; i < q->egress_count; i++)
            kept |= t->can_count[i] && q->egress[i].quota[k] && q->egress[i].quota[k] <= held->quota[k];
        if (!kept)
            complain_of(p, q, 0, "a total is not kept");
    }
}

static void compare(const struct policy *p, const struct policy *q)
{
    static struct totals totals[RULES_MOST * 2];
    for (size_t k = 0; k < p->egress_count; k++) {
        totals[k].any = false;
        memset(totals[k].can_count, true, sizeof(totals[k].can_count));
    }
    for (unsigned i = 0; i < QUESTIONS; i++) {
        struct egress_verdict a, b;
        struct egress_question ask;
        struct address mem;
        if (!question(i, &mem, &ask))
            continue;
        egress_judge(p, &ask, &a);
        egress_judge(q, &ask, &b);
        /* A verdict that waits for the request may yet be refused whatever that is. */
        if (!b.needs_http && reach_of(b.verdict) > reach_of(a.verdict))
            complain_of(p, q, i, "the child may, the parent may not");
        if (ask.flow == EGRESS_OPENING || b.verdict == VERDICT_DENY)
            continue;
        if (a.quota[QUOTA_RATE] && (!b.quota[QUOTA_RATE] || b.quota[QUOTA_RATE] > a.quota[QUOTA_RATE]))
            complain_of(p, q, i, "the child may more often");
        for (size_t k = 0; k < p->egress_count; k++)
            follow_totals(&totals[k], k, q, &a, &b);
    }
    for (size_t k = 0; k < p->egress_count; k++)
        assert_totals(&totals[k], &p->egress[k], p, q);
}

static void within_never_lets_a_child_reach_more(void **state)
{
    (void)state;
    static const char *const modes[] = {"filtered", "filtered", "filtered", "open"};
    uint64_t seed = 11;
    size_t within = 0, busy = 0;
    for (int i = 0; i < 8000; i++) {
        own_policy p = POLICY("network", ANY(&seed, modes)), q = POLICY("network", ANY(&seed, modes));
        for (unsigned n = dice(&seed, RULES_MOST + 1); n > 0; n--)
            some_rule(&seed, &p);
        take_over(&seed, &p, &q);
        for (unsigned n = dice(&seed, 3); n > 0; n--)
            some_rule(&seed, &q);
        if (!egress_within(&p, &q))
            continue;
        within++;
        busy += q.egress_count > 1;
        compare(&p, &q);
    }
    /* The property would say nothing if no pair were within. */
    if (within < 1000 || busy < 400)
        fail_msg("only %zu pairs within, %zu of them with rules", within, busy);
}

static void within_is_reflexive(void **state)
{
    (void)state;
    uint64_t seed = 4;
    for (int i = 0; i < 5000; i++) {
        own_policy p = POLICY("network", dice(&seed, 2) ? "open" : "filtered");
        for (unsigned n = dice(&seed, 8); n > 0; n--)
            some_rule(&seed, &p);
        if (!egress_within(&p, &p))
            complain_of(&p, &p, 0, "not within itself");
    }
}

static void egress_match_name_answers_whatever_may_be_reached(void **state)
{
    (void)state;
    uint64_t seed = 21;
    for (int i = 0; i < 800; i++) {
        own_policy p = POLICY("network", dice(&seed, 4) ? "filtered" : "open");
        for (unsigned n = dice(&seed, 6); n > 0; n--)
            some_rule(&seed, &p);
        /* What some port of a name may reach has an answer; that an answer leads nowhere is no harm. */
        for (unsigned k = 0; k < QUESTIONS; k++) {
            struct egress_question ask;
            struct egress_verdict v;
            struct address mem;
            if (!question(k, &mem, &ask) || !ask.name)
                continue;
            egress_judge(&p, &ask, &v);
            if (reach_of(v.verdict) > reach_of(egress_match_name(&p, ask.name, ask.minute)))
                complain_of(&p, &p, k, "a name that may be reached has no answer");
        }
    }
}

TESTS(cmocka_unit_test(within_judges_every_part_of_a_rule), cmocka_unit_test(within_holds_a_child_of_an_open_parent),
      cmocka_unit_test(within_never_lets_a_child_reach_more), cmocka_unit_test(within_is_reflexive),
      cmocka_unit_test(egress_match_name_answers_whatever_may_be_reached))
