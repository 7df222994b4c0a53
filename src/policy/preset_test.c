/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for policy/preset and policy/publish. */
#include "policy/policy_test.h"

#include "policy/preset.h"

static int apply(struct policy *p, const char *name, const char *text, struct pale_err *e)
{
    return preset_apply(p, name, text, strlen(text), e);
}

static void preset_of_pale_applies_and_says_its_version(void **state)
{
    (void)state;
    struct pale_err e = {0};
    const char *name;
    size_t count = 0;
    for (; (name = preset_at(count)); count++) {
        own_policy p = POLICY("network", "filtered", "network.presets", name);
        assert_string_equal(preset_pending(&p), name);
        assert_true(preset_is_name(name, strlen(name)));
        if (apply(&p, name, preset_text(name), &e) < 0)
            fail_msg("%s", e.text);
        assert_null(preset_pending(&p));
        assert_int_equal(policy_check(&p, &e), 0);
        assert_true((p.egress_count == 0) == (strcmp(name, "none") == 0));
        for (size_t i = 0; i < p.egress_count; i++)
            assert_true(p.egress[i].verdict == VERDICT_ALLOW && p.egress[i].domain && p.egress[i].port_count);
    }
    assert_int_equal(count, 5);
}

static void preset_dev_is_the_other_three(void **state)
{
    (void)state;
    struct pale_err e = {0};
    own_policy dev = POLICY("network", "filtered"), three = POLICY("network", "filtered");
    assert_int_equal(apply(&dev, "dev", preset_text("dev"), &e), 0);
    for (size_t i = 0; preset_at(i); i++)
        if (strcmp(preset_at(i), "dev") != 0 && strcmp(preset_at(i), "none") != 0)
            assert_int_equal(apply(&three, preset_at(i), preset_text(preset_at(i)), &e), 0);
    assert_int_equal(dev.presets.count, 4);
    assert_int_equal(dev.egress_count, three.egress_count);
    assert_int_equal(policy_narrow(&three, &dev, &e), 0);
    assert_int_equal(policy_narrow(&dev, &three, &e), 0);
}

static void preset_applied_twice_changes_nothing(void **state)
{
    (void)state;
    struct pale_err e = {0};
    own_policy p = POLICY("network", "filtered");
    char once[SHA256_HEX], twice[SHA256_HEX];
    assert_int_equal(apply(&p, "mine", "version 3\nx.org\n", &e), 0);
    policy_digest(&p, once);
    assert_int_equal(apply(&p, "mine", "version 3\nx.org\n", &e), 0);
    policy_digest(&p, twice);
    assert_string_equal(once, twice);
    assert_string_equal(p.presets.item[0], "mine@3");
    assert_int_equal(apply(&p, "mine", "version 4\nx.org\n", &e), -PALE_BAD_INPUT);
    assert_has(e.text, "mine@3 is mine@4 here");
}

static void preset_files_are_strict(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "says no version"},
        {"# x\n", "says no version"},
        {"x.org\nversion 1\n", "line 1: the first line says no version"},
        {"version 0\n", "line 1: a preset has one line"},
        {"version 1\nversion 1\n", "line 2: a preset has one line"},
        {"version 1\n\n# x\nx_y\n", "line 4: network.egress"},
        {"version 1\n x.org\n", "line 2: network.egress"},
        {"version 1\ninclude nothing\n", "line 2: \"nothing\" cannot be included"},
        {"version 1\ninclude mine\n", "cannot be included"},
        {"version 1\n*\n", "network: open"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        own_policy p = POLICY("network", "filtered");
        struct pale_err e = {0};
        assert_int_equal(apply(&p, "mine", cases[i].text, &e), -PALE_BAD_INPUT);
        assert_has(e.text, cases[i].says);
    }
}

static void preset_that_was_not_applied_is_not_held(void **state)
{
    (void)state;
    struct pale_err e = {0};
    own_policy p = POLICY("network", "filtered", "network.presets", "dev");
    assert_int_equal(policy_held(&p, &e), -PALE_UNSUPPORTED);
    assert_has(e.text, "network.presets");
}

static void preset_names_are_plain(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "A", "-a", "a/b", "..", "a b", "a@", "a@0", "a@1@2", "@1", "a@x"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        own_policy p = POLICY();
        struct pale_err e = {0};
        assert_int_equal(policy_set(&p, "network.presets", bad[i], &e), -PALE_BAD_INPUT);
    }
}

static void publish_takes_ports_of_loopback(void **state)
{
    (void)state;
    own_policy p = POLICY("network.publish", "8080:80", "network.publish", "443", "network.publish", "8080:80");
    static const char *const bad[] = {"", ":", "80:", ":80", "0:80", "80:0", "65536", "1:2:3", "127.0.0.1:80:80", "8080:81", "x"};
    assert_int_equal(p.publish_count, 2);
    assert_int_equal(p.publish[0].host, 443);
    assert_int_equal(p.publish[1].box, 80);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct pale_err e = {0};
        assert_int_equal(policy_set(&p, "network.publish", bad[i], &e), -PALE_BAD_INPUT);
    }
    own_policy none = POLICY("network", "none", "network.publish", "80");
    struct pale_err e = {0};
    assert_int_equal(policy_check(&none, &e), -PALE_BAD_INPUT);
    own_policy wide = POLICY("network", "filtered", "network.publish", "80", "network.publish", "81");
    own_policy less = POLICY("network", "filtered", "network.publish", "81");
    assert_int_equal(policy_narrow(&wide, &less, &e), 0);
    assert_int_equal(policy_narrow(&less, &wide, &e), -PALE_DENIED);
}

TESTS(cmocka_unit_test(preset_of_pale_applies_and_says_its_version), cmocka_unit_test(preset_dev_is_the_other_three),
      cmocka_unit_test(preset_applied_twice_changes_nothing), cmocka_unit_test(preset_files_are_strict),
      cmocka_unit_test(preset_that_was_not_applied_is_not_held), cmocka_unit_test(preset_names_are_plain),
      cmocka_unit_test(publish_takes_ports_of_loopback))
