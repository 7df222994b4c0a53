/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for policy/show. */
#include "policy/policy_test.h"

#include "base/limits.h"

static void diff_text(const struct policy *a, const struct policy *b, size_t count, const char *want)
{
    own_buf out = {0};
    buf_init(&out, POLICY_TEXT_MAX);
    assert_int_equal(policy_diff(a, b, &out, NULL), count);
    assert_string_equal(buf_text(&out), want);
}

static void diff_says_what_each_difference_does(void **state)
{
    (void)state;
    own_policy a = POLICY("limits.memory", "512M", "read", "/a", "network.egress", "x.org=deny", "guard", "zz", "limits.wall", "1s");
    own_policy b = POLICY("limits.memory", "1G", "read", "/b", "tier", "native", "project", "live", "env.set", "A=1", "limits.wall", "1s",
                          "seccomp", "debug", "env.set", "MY_TOKEN=x", "project.path", "/w/p", "limits.output", "1G");
    diff_text(&a, &a, 0, "");
    diff_text(&a, &b, 12,
              "tier: auto -> native (wider)\n"
              "project.mode: none -> live (wider)\n"
              "project.path: none -> /w/p (different)\n"
              "read: - /a (narrower)\n"
              "read: + /b (wider)\n"
              "network.egress: - x.org=deny (wider)\n"
              "limits.memory: 512MiB -> 1GiB (wider)\n"
              "limits.output: 1GiB (default) -> 1GiB (narrower)\n"
              "env.set: + A=1 (different)\n"
              "env.set: + MY_TOKEN=(hidden) (different)\n"
              "seccomp: strict -> debug (wider)\n"
              "guard: - zz (wider)\n");
}

static void diff_shows_exactly_what_rounding_hides(void **state)
{
    (void)state;
    own_policy a = POLICY("limits.memory", "1073741824"), b = POLICY("limits.memory", "1073741825");
    diff_text(&a, &b, 1, "limits.memory: 1073741824 -> 1073741825 (wider)\n");
}

static void diff_as_json_is_a_list_of_objects(void **state)
{
    (void)state;
    own_policy a = POLICY("volumes", "/a:/b"), b = POLICY("tier", "native");
    own_buf out = {0};
    struct json j;
    buf_init(&out, POLICY_TEXT_MAX);
    json_start(&j, &out);
    json_begin_list(&j, NULL);
    assert_int_equal(policy_diff(&a, &b, NULL, &j), 2);
    json_end_list(&j);
    assert_string_equal(buf_text(&out), "[{\"key\":\"tier\",\"from\":\"auto\",\"to\":\"native\",\"effect\":\"wider\"},"
                                        "{\"key\":\"volumes\",\"from\":\"/a:/b:rw\",\"effect\":\"narrower\"}]");
}

static void show_lists_every_key(void **state)
{
    (void)state;
    own_policy p = POLICY("read", "/a\xe2\x80\xae", "read", "/b", "env.set", "API_KEY=hunter2", "limits.cost_usd", "0.1");
    own_buf out = {0};
    const struct field *f;
    buf_init(&out, POLICY_TEXT_MAX);
    policy_show(&p, &out);
    const char *text = buf_text(&out);
    for (size_t i = 0; (f = field_at(i)); i++)
        assert_has(text, f->key);
    assert_has(text, "limits.memory       4GiB (default)\n");
    assert_has(text, "limits.cost_usd     $0.100000\n");
    assert_has(text, "read                /a\\u{202e}\n                    /b\n");
    assert_has(text, "write               none\n");
    assert_null(strstr(text, "hunter2"));
}

static void json_nests_keys_and_has_them_all(void **state)
{
    (void)state;
    own_policy p =
        POLICY("volumes", "/a:/b:ro", "network.egress", "x.org:443=ask@5", "env.set", "A=1", "limits.memory", "1G", "image", "debian:12");
    own_buf out = {0};
    struct json j;
    buf_init(&out, POLICY_TEXT_MAX);
    json_start(&j, &out);
    policy_json(&p, &j, NULL);
    const char *text = buf_text(&out);
    assert_has(text, "{\"tier\":\"auto\",\"image\":\"debian:12\",\"project\":{\"mode\":\"none\",\"path\":null},\"read\":[]");
    assert_has(text, "\"volumes\":[{\"host\":\"/a\",\"target\":\"/b\",\"mode\":\"ro\"}]");
    assert_has(text, "\"network\":{\"mode\":\"none\",\"presets\":[],\"egress\":[{\"domain\":\"x.org\",\"ports\":[443],\"rate_limit_per_"
                     "min\":5,\"verdict\":\"ask\"}],\"publish\":[]}");
    assert_has(
        text,
        "\"limits\":{\"memory\":{\"value\":1073741824,\"asked\":true},\"processes\":{\"value\":512,\"asked\":false},\"cpu_seconds\":null");
    assert_has(text, "\"env\":{\"set\":{\"A\":\"1\"},\"pass\":[],\"allow\":[],\"held_back\":[]},\"scratch\":\"disk\"");
    assert_int_equal(j.depth, 0);
}

static void only_rules_of_a_network_that_is_there_change_without_a_start(void **state)
{
    (void)state;
    own_policy a = POLICY("network", "filtered", "network.egress", "x.org"), b = POLICY("network", "open", "network.egress", "x.org=deny");
    own_policy shut = POLICY("network", "none"), host = POLICY("network", "host"),
               memory = POLICY("network", "filtered", "limits.memory", "1G");
    assert_null(policy_needs_start(&a, &b, true));
    assert_null(policy_needs_start(&a, &shut, true));
    assert_null(policy_needs_start(&shut, &a, true));
    assert_null(policy_needs_start(&a, &a, false));
    assert_string_equal(policy_needs_start(&shut, &a, false), "network.mode");
    assert_string_equal(policy_needs_start(&a, &host, true), "network.mode");
    assert_string_equal(policy_needs_start(&a, &memory, true), "limits.memory");
}

TESTS(cmocka_unit_test(diff_says_what_each_difference_does), cmocka_unit_test(diff_shows_exactly_what_rounding_hides),
      cmocka_unit_test(diff_as_json_is_a_list_of_objects), cmocka_unit_test(show_lists_every_key),
      cmocka_unit_test(json_nests_keys_and_has_them_all), cmocka_unit_test(only_rules_of_a_network_that_is_there_change_without_a_start))
