/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for policy/ask. */
#include "policy/policy_test.h"

static struct policy_answer ask(const struct policy *p, const char *kind, const char *what)
{
    struct policy_answer a = {0};
    struct pale_err e = {0};
    if (policy_ask(p, kind, what, &a, &e) < 0)
        fail_msg("%s %s: %s", kind, what, e.text);
    assert_true(a.reason[0] && a.rule[0]);
    return a;
}

static void ask_names_the_line_that_decides(void **state)
{
    (void)state;
    own_policy p = POLICY("project", "live", "project.path", "/w/p", "read", "/w/p/keys", "write", "/out", "volumes", "/d:/m:ro", "network",
                          "filtered", "network.egress", "*.x.org:443@60", "network.egress", "bad.x.org=deny", "network.egress", "*=ask",
                          "env.pass", "LC_*", "env.pass", "API_KEY", "env.pass", "AWS*", "env.set", "LC_ALL=C");
    static const struct {
        const char *kind, *what;
        enum policy_verdict verdict;
        const char *rule;
    } cases[] = {
        {"read", "/w/p/a", VERDICT_ALLOW, "project /w/p"},
        {"write", "/w/p/a", VERDICT_ALLOW, "project /w/p"},
        {"write", "/w/p", VERDICT_ALLOW, "project /w/p"},
        {"write", "/w/p/sub/.claude/settings.json", VERDICT_DENY, "guard .claude"},
        {"write", "/w/p/.GIT/Hooks/x", VERDICT_DENY, "guard .git/hooks"},
        {"write", "/w/p/.git/HEAD", VERDICT_ALLOW, "project /w/p"},
        {"write", "/w/p/keys/a", VERDICT_DENY, "read /w/p/keys"},
        {"write", "/out/.git/hooks", VERDICT_ALLOW, "write /out"},
        {"read", "/m/x", VERDICT_ALLOW, "volumes /m"},
        {"write", "/m/x", VERDICT_DENY, "volumes /m"},
        {"read", "/d/x", VERDICT_DENY, "default"},
        {"read", "/usr/bin/env", VERDICT_ALLOW, "image -"},
        {"write", "/usr/bin/env", VERDICT_DENY, "default"},
        {"read", "/etc/shadow", VERDICT_DENY, "default"},
        {"read", "/", VERDICT_DENY, "default"},
        {"reach", "a.x.org", VERDICT_ALLOW, "network.egress *.x.org:443@60"},
        {"reach", "A.X.org:443", VERDICT_ALLOW, "network.egress *.x.org:443@60"},
        {"reach", "a.x.org:80", VERDICT_ASK, "network.egress *=ask"},
        {"reach", "bad.x.org:443", VERDICT_DENY, "network.egress bad.x.org=deny"},
        {"env", "LC_TIME", VERDICT_ALLOW, "env.pass LC_*"},
        {"env", "LC_ALL", VERDICT_DENY, "env.set LC_ALL"},
        {"env", "API_KEY", VERDICT_ALLOW, "env.pass API_KEY"},
        {"env", "AWS_SECRET_ACCESS_KEY", VERDICT_DENY, "env.pass AWS*"},
        {"env", "HOME", VERDICT_DENY, "default"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct policy_answer a = ask(&p, cases[i].kind, cases[i].what);
        if (a.verdict != cases[i].verdict || strcmp(a.rule, cases[i].rule) != 0)
            fail_msg("%s %s: %d by %s", cases[i].kind, cases[i].what, a.verdict, a.rule);
        assert_int_equal(a.allowed, a.verdict == VERDICT_ALLOW);
    }
}

static void ask_knows_the_network_modes(void **state)
{
    (void)state;
    own_policy none = POLICY(), filtered = POLICY("network", "filtered"), host = POLICY("network", "host");
    own_policy open = POLICY("network", "open", "network.egress", "bad.org=deny");
    assert_string_equal(ask(&none, "reach", "x.org").rule, "network.mode none");
    assert_string_equal(ask(&filtered, "reach", "x.org").rule, "network.mode filtered");
    assert_true(ask(&host, "reach", "x.org").allowed);
    assert_true(ask(&open, "reach", "x.org:22").allowed);
    assert_false(ask(&open, "reach", "bad.org").allowed);
}

static void ask_tells_review_and_images_apart(void **state)
{
    (void)state;
    own_policy p = POLICY("project", "review", "project.path", "/w/p", "image", "debian");
    assert_int_equal(ask(&p, "write", "/w/p/x").verdict, VERDICT_ASK);
    assert_false(ask(&p, "read", "/usr/bin/env").allowed);
}

static void ask_refuses_questions_that_make_no_sense(void **state)
{
    (void)state;
    own_policy p = POLICY();
    static const struct {
        const char *kind, *what, *says;
    } bad[] = {
        {"raed", "/a", "did you mean \"read\""},
        {"fly", "/a", "read, write, reach or env"},
        {"read", "a", "not absolute"},
        {"write", "/a/../b", "component"},
        {"reach", "*.x.org", "labels"},
        {"reach", "1.2.3", "address"},
        {"reach", "x.org:", "NAME:PORT"},
        {"reach", "x.org:0", "NAME:PORT"},
        {"reach", "", "host name"},
        {"env", "A B", "no variable name"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct policy_answer a = {0};
        struct pale_err e = {0};
        assert_int_equal(policy_ask(&p, bad[i].kind, bad[i].what, &a, &e), -PALE_BAD_INPUT);
        assert_has(e.text, bad[i].says);
    }
}

static void ask_makes_foreign_text_harmless(void **state)
{
    (void)state;
    own_policy p = POLICY("read", "/a\xe2\x80\xae");
    assert_string_equal(ask(&p, "read", "/a\xe2\x80\xae/x").rule, "read /a\\u{202e}");
}

TESTS(cmocka_unit_test(ask_names_the_line_that_decides), cmocka_unit_test(ask_knows_the_network_modes),
      cmocka_unit_test(ask_tells_review_and_images_apart), cmocka_unit_test(ask_refuses_questions_that_make_no_sense),
      cmocka_unit_test(ask_makes_foreign_text_harmless))
