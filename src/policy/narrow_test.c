/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for policy/narrow, and the property that holds it: what a narrower policy allows, the wider one does. */
#include "policy/policy_test.h"

static bool narrows(const struct policy *parent, const struct policy *child)
{
    struct pale_err e = {0};
    int r = policy_narrow(parent, child, &e);
    assert_true(r == 0 || (r == -PALE_DENIED && e.text[0]));
    return r == 0;
}

/* One key each: does the second value lie within the first? NULL: the default. */
static void narrow_judges_every_key(void **state)
{
    (void)state;
    static const struct {
        const char *key, *parent, *child;
        bool within;
    } cases[] = {
        {"tier", "native", "gvisor", true},
        {"tier", "auto", "gvisor", true},
        {"tier", "auto", "native", false},
        {"tier", "gvisor", "native", false},
        {"tier", "native", "auto", true},
        {"image", "a", "a", true},
        {"image", "a", "b", false},
        {"image", "a", NULL, false},
        {"image", NULL, "a", false},
        {"project", "live", "review", true},
        {"project", "live", "ro", true},
        {"project", "live", NULL, true},
        {"project", "ro", "review", false},
        {"project", NULL, "ro", false},
        {"read", "/a", "/a/b", true},
        {"read", "/a", "/ab", false},
        {"read", NULL, "/a", false},
        {"write", "/a", "/a/b", true},
        {"volumes", "/a:/b", "/a/c:/b/c:ro", true},
        {"volumes", "/a:/b", "/a/c:/d", false},
        {"volumes", "/a:/b:ro", "/a:/b:rw", false},
        {"volumes", "/a:/b", "/x:/b", false},
        {"volume_root", "/a", "/a/b", true},
        {"volume_root", "/a", NULL, false},
        {"volume_root", NULL, "/a", true},
        {"network", "host", "open", true},
        {"network", "open", "host", false},
        {"network", NULL, "filtered", false},
        {"limits.memory", "1G", "512M", true},
        {"limits.memory", "1G", "2G", false},
        {"limits.memory", "1G", "none", false},
        {"limits.memory", "none", "1G", true},
        {"limits.memory", "4G", NULL, false},
        {"limits.memory", NULL, "4G", true},
        {"limits.wall", NULL, "1s", true},
        {"env.set", "A=1", "A=2", true},
        {"env.set", NULL, "A=2", true},
        {"env.pass", "LC_*", "LC_ALL", true},
        {"env.pass", "LC_*", "LC_A*", true},
        {"env.pass", "LC_*", "LC_KEY", false},
        {"env.pass", "LC_ALL", "LC_*", false},
        {"env.pass", NULL, "A", false},
        {"env.allow", "LC_*", "LC_KEY", true},
        {"env.allow", "LC_ALL", "LC_*", false},
        {"env.allow", NULL, "A", false},
        {"scratch", "disk", "memory", true},
        {"scratch", "memory", "disk", false},
        {"seccomp", "debug", "strict", true},
        {"seccomp", "strict", "debug", false},
        {"seccomp", "debug", "image-build", false},
        {"seccomp", "image-build", "debug", false},
        {"guard", NULL, "x", true},
        {"guard", "x", NULL, false},
        {"guard", "x/y", "x", true},
        {"guard", NULL, "-.claude", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        own_policy p = POLICY(), q = POLICY();
        if (cases[i].parent)
            set(&p, cases[i].key, cases[i].parent);
        if (cases[i].child)
            set(&q, cases[i].key, cases[i].child);
        if (narrows(&p, &q) != cases[i].within)
            fail_msg("%s %s -> %s", cases[i].key, cases[i].parent, cases[i].child);
    }
}

static void narrow_judges_egress_rules(void **state)
{
    (void)state;
    static const struct {
        const char *parent[3], *child[3];
        bool within;
    } cases[] = {
        {{"x.org"}, {"x.org:443"}, true},
        {{"x.org:443"}, {"x.org"}, false},
        {{"x.org:80,443"}, {"x.org:443"}, true},
        {{"x.org:443"}, {"x.org:443,80"}, false},
        {{"*.x.org"}, {"a.x.org"}, true},
        {{"*.x.org"}, {"x.org"}, false},
        {{"*.x.org"}, {"*.a.x.org"}, true},
        {{"*.a.x.org"}, {"*.x.org"}, false},
        {{"*.x.org"}, {"ax.org"}, false},
        {{"x.org"}, {"x.org=ask"}, true},
        {{"x.org=ask"}, {"x.org"}, false},
        {{"*=ask"}, {"x.org=ask"}, true},
        {{"x.org"}, {"x.org=deny"}, true},
        {{"x.org", "x.org:25=deny"}, {"x.org"}, false},
        {{"x.org", "x.org:25=deny"}, {"x.org:443"}, true},
        {{"x.org", "x.org:25=deny"}, {"x.org", "*:25=deny"}, true},
        {{"x.org", "x.org:25=deny"}, {"x.org", "x.org=deny"}, true},
        {{"x.org@60"}, {"x.org@60"}, true},
        {{"x.org@60"}, {"x.org@30"}, true},
        {{"x.org@60"}, {"x.org"}, false},
        {{"x.org@60"}, {"x.org@61"}, false},
        {{"*.x.org", "a.x.org@5"}, {"*.x.org"}, false},
        {{"*.x.org", "a.x.org@5"}, {"b.x.org"}, true},
        {{"*.x.org", "a.x.org@5"}, {"*.x.org", "a.x.org@5"}, true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        own_policy p = POLICY("network", "filtered"), q = POLICY("network", "filtered");
        for (size_t k = 0; k < 3; k++) {
            if (cases[i].parent[k])
                set(&p, "network.egress", cases[i].parent[k]);
            if (cases[i].child[k])
                set(&q, "network.egress", cases[i].child[k]);
        }
        if (narrows(&p, &q) != cases[i].within)
            fail_msg("case %zu: %s -> %s", i, cases[i].parent[0], cases[i].child[0]);
    }
}

static void narrow_keeps_what_an_inner_folder_holds_back(void **state)
{
    (void)state;
    own_policy p = POLICY("write", "/a", "read", "/a/keys"), q = POLICY("write", "/a");
    struct pale_err e = {0};
    assert_int_equal(policy_narrow(&p, &q, &e), -PALE_DENIED);
    assert_string_equal(e.text, "write: /a/keys is widened from read-only to writable; the parent has it under read");
    own_policy r = POLICY("write", "/a/b");
    assert_true(narrows(&p, &r));
    own_policy hidden = POLICY("volumes", "/a:/m:ro", "volumes", "/empty:/m/keys:ro"), bare = POLICY("volumes", "/a:/m:ro");
    assert_false(narrows(&hidden, &bare));
}

static void narrow_holds_a_child_to_the_guard_of_a_live_project(void **state)
{
    (void)state;
    own_policy p = POLICY("project", "live", "project.path", "/w/p");
    own_policy q = POLICY("write", "/w/p"), r = POLICY("project", "ro", "project.path", "/w/p/q"), s = POLICY("project", "live");
    assert_false(narrows(&p, &q));
    assert_true(narrows(&p, &r));
    assert_false(narrows(&p, &s));
    own_policy w = POLICY("write", "/w");
    assert_true(narrows(&w, &p));
}

static void narrow_does_not_uncover_a_variable_the_parent_sets(void **state)
{
    (void)state;
    own_policy p = POLICY("env.pass", "LC_*", "env.set", "LC_ALL=C"), q = POLICY("env.pass", "LC_*"), r = POLICY("env.pass", "LC_TIME");
    assert_false(narrows(&p, &q));
    assert_true(narrows(&p, &r));
}

static void narrow_names_the_key_and_both_values(void **state)
{
    (void)state;
    own_policy p = POLICY("limits.memory", "512M"), q = POLICY("limits.memory", "1G");
    struct pale_err e = {0};
    assert_int_equal(policy_narrow(&p, &q, &e), -PALE_DENIED);
    assert_string_equal(e.text, "limits.memory: widened from 512MiB to 1GiB; only the operator may widen a policy");
}

static void narrow_cuts_long_values_between_characters(void **state)
{
    (void)state;
    own_policy p = {0}, q = {0};
    struct pale_err e = {0};
    char name[200] = "";
    for (size_t i = 0; i + 3 < sizeof(name); i += 3)
        memcpy(name + i, "\xe2\x82\xac", 4);
    set(&p, "guard", name);
    assert_int_equal(policy_narrow(&p, &q, &e), -PALE_DENIED);
    assert_has(e.text, "\xe2\x82\xac\xe2\x80\xa6 to ");
}

static const struct {
    const char *kind, *what;
} questions[] = {
    {"read", "/w"},
    {"read", "/w/p"},
    {"read", "/w/p/q/x"},
    {"read", "/data/a/x"},
    {"read", "/data"},
    {"read", "/mnt/d/x"},
    {"read", "/mnt/d/a"},
    {"read", "/usr/bin/env"},
    {"read", "/etc/passwd"},
    {"write", "/w/x"},
    {"write", "/w/p/x"},
    {"write", "/w/p/q/x"},
    {"write", "/w/p/.git/config"},
    {"write", "/w/p/q/.git/HEAD"},
    {"write", "/w/p/x/y"},
    {"write", "/data/a"},
    {"write", "/data/a b%\xc3\xa9/c"},
    {"write", "/mnt/d/a/x"},
    {"write", "/mnt/d"},
    {"write", "/usr/bin/env"},
    {"reach", "x.org"},
    {"reach", "a.x.org"},
    {"reach", "a.x.org:80"},
    {"reach", "b.a.x.org:25"},
    {"reach", "b.a.x.org"},
    {"reach", "y.org:25"},
    {"reach", "y.org"},
    {"env", "A"},
    {"env", "AB"},
    {"env", "LC_ALL"},
    {"env", "LC_TIME"},
    {"env", "API_KEY"},
    {"env", "AWS_PROFILE"},
    {"env", "AUTH_X"},
};

/* How much a verdict lets through. */
static int reach_of(const struct policy_answer *a)
{
    assert_int_equal(a->allowed, a->verdict == VERDICT_ALLOW);
    return a->verdict == VERDICT_ALLOW ? 2 : a->verdict == VERDICT_ASK ? 1 : 0;
}

static void compare_answers(const struct policy *p, const struct policy *q)
{
    for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); i++) {
        struct policy_answer a, b;
        struct pale_err e = {0};
        assert_int_equal(policy_ask(p, questions[i].kind, questions[i].what, &a, &e), 0);
        assert_int_equal(policy_ask(q, questions[i].kind, questions[i].what, &b, &e), 0);
        if (reach_of(&b) > reach_of(&a))
            fail_msg("%s %s: %s, yet the parent says %s", questions[i].kind, questions[i].what, b.rule, a.rule);
    }
}

static void narrow_never_lets_a_child_do_what_its_parent_may_not(void **state)
{
    (void)state;
    uint64_t seed = 3;
    size_t within = 0;
    for (int i = 0; i < 20000; i++) {
        own_policy p = some_policy(&seed, 14), q = some_policy(&seed, 8);
        if (!narrows(&p, &q))
            continue;
        within++;
        compare_answers(&p, &q);
    }
    /* The property would say nothing if no pair were within. */
    assert_true(within > 150);
}

/* Most random pairs differ in some key that no question is about; here only the keys that questions ask about vary. */
static void narrow_never_lets_a_child_do_more_where_only_reach_differs(void **state)
{
    (void)state;
    uint64_t seed = 5;
    size_t within = 0;
    for (int i = 0; i < 20000; i++) {
        own_policy p = POLICY("network", "filtered"), q = POLICY("network", "filtered");
        for (int n = 0; n < 10; n++) {
            const struct sample *s = &samples[dice(&seed, SAMPLE_COUNT)];
            if (strncmp(s->key, "network.", 8) != 0 && strncmp(s->key, "env.", 4) != 0 && strcmp(s->key, "write") != 0 &&
                strcmp(s->key, "read") != 0 && strcmp(s->key, "volumes") != 0)
                continue;
            set(n < 7 ? &p : &q, s->key, s->value);
        }
        if (!narrows(&p, &q))
            continue;
        within++;
        compare_answers(&p, &q);
    }
    assert_true(within > 1500);
}

static void narrow_is_reflexive(void **state)
{
    (void)state;
    uint64_t seed = 9;
    for (int i = 0; i < 3000; i++) {
        own_policy p = some_policy(&seed, 30);
        struct pale_err e = {0};
        /* Two lines for one place are no policy: which one decides is left open. */
        if (policy_check(&p, &e) == 0 && policy_narrow(&p, &p, &e) < 0)
            fail_msg("not within itself: %s", e.text);
    }
}

TESTS(cmocka_unit_test(narrow_judges_every_key), cmocka_unit_test(narrow_judges_egress_rules),
      cmocka_unit_test(narrow_keeps_what_an_inner_folder_holds_back), cmocka_unit_test(narrow_holds_a_child_to_the_guard_of_a_live_project),
      cmocka_unit_test(narrow_does_not_uncover_a_variable_the_parent_sets), cmocka_unit_test(narrow_names_the_key_and_both_values),
      cmocka_unit_test(narrow_cuts_long_values_between_characters), cmocka_unit_test(narrow_never_lets_a_child_do_what_its_parent_may_not),
      cmocka_unit_test(narrow_never_lets_a_child_do_more_where_only_reach_differs), cmocka_unit_test(narrow_is_reflexive))
