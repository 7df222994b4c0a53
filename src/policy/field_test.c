/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for policy/field and the kinds of keys it lists. */
#include "policy/policy_test.h"

#include <stdio.h>

#include "base/limits.h"

static void defaults_deny_everything(void **state)
{
    (void)state;
    own_policy p = POLICY();
    assert_int_equal(p.tier, TIER_AUTO);
    assert_null(p.image);
    assert_int_equal(p.project, PROJECT_NONE);
    assert_int_equal(p.network, NETWORK_NONE);
    assert_int_equal(p.read.count + p.write.count + p.volume_count + p.egress_count + p.env_set.count + p.env_pass.count, 0);
    assert_int_equal(p.limits[LIMIT_MEMORY].value, 4294967296);
    assert_int_equal(p.limits[LIMIT_PROCESSES].value, 512);
    assert_int_equal(p.limits[LIMIT_OUTPUT].value, 1073741824);
    assert_int_equal(p.limits[LIMIT_DISK].value, 0);
    for (int i = 0; i < LIMIT_COUNT; i++)
        assert_false(p.limits[i].asked);
    assert_int_equal(p.seccomp, SECCOMP_STRICT);
    assert_true(p.guard.count > 30);
}

static void set_refuses_bad_values_and_changes_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *key, *value, *says;
    } bad[] = {
        {"teir", "auto", "did you mean \"tier\""},
        {"limits.memroy", "1G", "did you mean \"limits.memory\""},
        {"zzzzzzzzzzz", "1", "unknown key"},
        {"tier", "natve", "did you mean \"native\""},
        {"tier", "xxxxxxxx", "auto, native, gvisor or microvm"},
        {"tier", "", "is not auto"},
        {"image", "..", "no image name"},
        {"image", "a b", "no image name"},
        {"image", "a/../b", "no image name"},
        {"image", "/a/../b", "component"},
        {"project", "rw", "is not none"},
        {"project.path", "p", "not absolute"},
        {"read", "", "not absolute"},
        {"read", "/a/", "empty component"},
        {"read", "/a//b", "empty component"},
        {"read", "/a/./b", "component"},
        {"read", "/a/..", "component"},
        {"read", "/a\nb", "control byte"},
        {"read", "/", "whole system"},
        {"read", "/proc/1", "its own"},
        {"read", "/run/docker.sock", "sockets"},
        {"read", "/home/u", "home folder"},
        {"write", "/etc/x", "root is made of"},
        {"write", "/usr", "root is made of"},
        {"write", "/tmp", "shares it"},
        {"write", "/root", "home folder"},
        {"volumes", "/a", "HOST:TARGET"},
        {"volumes", "/a:", "HOST:TARGET"},
        {"volumes", ":/a", "HOST:TARGET"},
        {"volumes", "/a:/b:rx", "HOST:TARGET"},
        {"volumes", "/a:/b:ro:", "HOST:TARGET"},
        {"volumes", "/a:b", "not absolute"},
        {"volumes", "/a:/usr/lib", "root is made of"},
        {"volumes", "/a:/proc", "its own"},
        {"volumes", "/a:/run/pale/x", "its own"},
        {"volumes", "/var/run/docker.sock:/s", "sockets"},
        {"volume_root", "x", "not absolute"},
        {"network", "all", "is not none"},
        {"network.egress", "", "host name"},
        {"network.egress", "x_y.org", "labels"},
        {"network.egress", "10.0.0.1", "address"},
        {"network.egress", "0x7f000001", "address"},
        {"network.egress", "x.org.", "ends with a dot"},
        {"network.egress", "a.*.org", "labels"},
        {"network.egress", "x.org:0", "no port"},
        {"network.egress", "x.org:65536", "no port"},
        {"network.egress", "x.org:", "no port"},
        {"network.egress", "x.org:80,", "no port"},
        {"network.egress", "x.org:99999999999", "no port"},
        {"network.egress", "x.org=maybe", "allow, ask or deny"},
        {"network.egress", "x.org=", "allow, ask or deny"},
        {"network.egress", "x.org@0", "no rate"},
        {"network.egress", "x.org@99999999999999", "no rate"},
        {"network.egress", "x.org@5=ask", "no rate"},
        {"network.egress", "x.org=ask:80", "allow, ask or deny"},
        {"network.egress", "*", "network: open"},
        {"limits.memory", "1.5G", "for example 512M"},
        {"limits.memory", "0", "none for no limit"},
        {"limits.memory", "4096", "write 4096M"},
        {"limits.memory", "-1", "for example"},
        {"limits.processes", "5000000", "out of range"},
        {"limits.cpu_seconds", "soon", "30s"},
        {"limits.cpu_share", "0.001", "out of range"},
        {"limits.cost_usd", "$1", "0.10"},
        {"env.set", "A", "no value"},
        {"env.set", "1A=x", "no variable name"},
        {"env.set", "=x", "no variable name"},
        {"env.set", "PALE_X=1", "our own programs"},
        {"env.pass", "*", "whole environment"},
        {"env.pass", "A-B", "no variable name"},
        {"env.pass", "", "no variable name"},
        {"env.pass", "PALE_*", "our own programs"},
        {"env.pass", "A*B", "no variable name"},
        {"scratch", "ram", "disk or memory"},
        {"seccomp", "off", "strict"},
        {"guard", "", "no name"},
        {"guard", "/x", "relative name"},
        {"guard", "a/../b", "relative name"},
        {"guard", "x/", "relative name"},
        {"guard", "a\tb", "control byte"},
        {"guard", "-nothere", "not in the list"},
    };
    own_policy same = POLICY();
    char before[SHA256_HEX], after[SHA256_HEX];
    policy_digest(&same, before);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct pale_err e = {0};
        if (policy_set(&same, bad[i].key, bad[i].value, &e) == 0)
            fail_msg("%s %s was taken", bad[i].key, bad[i].value);
        assert_has(e.text, bad[i].says);
        policy_digest(&same, after);
        assert_string_equal(before, after);
    }
}

static void set_takes_what_people_type(void **state)
{
    (void)state;
    own_policy p = POLICY("tier", "firecracker", "network", "filtered", "limits.memory", "512MiB", "limits.cpu_share", "1.5",
                          "limits.cpu_seconds", "5m", "limits.cost_usd", "0.10", "volumes", "/a:/b", "volumes", "/a:/c:ro", "read",
                          "/etc/ssl", "guard", "-.vscode", "network.egress", "*.X.org:443,80=ask@5", "env.set", "A=b=c", "env.set", "A=d");
    assert_int_equal(p.tier, TIER_MICROVM);
    assert_int_equal(p.limits[LIMIT_MEMORY].value, 512 << 20);
    assert_true(p.limits[LIMIT_MEMORY].asked);
    assert_int_equal(p.limits[LIMIT_CPU_SHARE].value, 1500);
    assert_int_equal(p.limits[LIMIT_CPU_TIME].value, 300000);
    assert_int_equal(p.limits[LIMIT_COST].value, 100000);
    assert_true(p.volumes[0].writable);
    assert_false(p.volumes[1].writable);
    assert_string_equal(p.egress[0].domain, "*.x.org");
    assert_int_equal(p.egress[0].ports[0], 80);
    assert_int_equal(p.egress[0].verdict, VERDICT_ASK);
    assert_int_equal(p.egress[0].quota[QUOTA_RATE], 5);
    assert_int_equal(p.env_set.count, 1);
    assert_string_equal(p.env_set.item[0], "A=d");
    set(&p, "limits.memory", "none");
    assert_int_equal(p.limits[LIMIT_MEMORY].value, 0);
    assert_false(p.limits[LIMIT_MEMORY].asked);
    set(&p, "image", "node:22");
    assert_string_equal(p.image, "node:22");
    set(&p, "image", "-");
    assert_null(p.image);
}

static void set_stops_at_the_end_of_a_list(void **state)
{
    (void)state;
    static const struct {
        const char *key, *format;
    } lists[] = {{"read", "/a/%d"}, {"volumes", "/a:/b/%d"}, {"network.egress", "h%d.org"}, {"env.pass", "A%d"}, {"env.set", "A%d=1"}};
    for (size_t k = 0; k < sizeof(lists) / sizeof(lists[0]); k++) {
        own_policy p = POLICY();
        struct pale_err e = {0};
        char value[32];
        for (int i = 0; i < POLICY_LIST_MAX; i++) {
            snprintf(value, sizeof(value), lists[k].format, i);
            set(&p, lists[k].key, value);
        }
        snprintf(value, sizeof(value), lists[k].format, POLICY_LIST_MAX);
        assert_int_equal(policy_set(&p, lists[k].key, value, &e), -PALE_LIMIT);
    }
}

static void set_stops_at_the_longest_value(void **state)
{
    (void)state;
    own_policy p = POLICY();
    struct pale_err e = {0};
    own_mem char *text = calloc(1, ENV_VALUE_MAX + 8);
    memset(text, 'a', ENV_VALUE_MAX + 4);
    assert_true(policy_set(&p, "env.pass", text, &e) < 0);
    text[0] = '/';
    assert_true(policy_set(&p, "read", text, &e) < 0);
    text[300] = 0;
    assert_true(policy_set(&p, "read", text, &e) < 0);
    assert_true(policy_set(&p, "guard", text + 1, &e) < 0);
    assert_true(policy_set(&p, "image", text + 1, &e) < 0);
    assert_true(policy_set(&p, "network.egress", text + 1, &e) < 0);
    text[65] = 0;
    assert_true(policy_set(&p, "network.egress", text + 1, &e) < 0);
    memset(text, 'a', ENV_VALUE_MAX + 4);
    text[1] = '=';
    assert_int_equal(policy_set(&p, "env.set", text, &e), -PALE_LIMIT);
    char ports[700] = "x.org:1";
    for (size_t i = 2, n = strlen(ports); i <= EGRESS_PORTS_MAX + 1; i++)
        n += (size_t)snprintf(ports + n, sizeof(ports) - n, ",%zu", i);
    assert_int_equal(policy_set(&p, "network.egress", ports, &e), -PALE_LIMIT);
}

static void names_are_those_of_the_keys(void **state)
{
    (void)state;
    assert_string_equal(policy_network_name(NETWORK_HOST), "host");
    assert_string_equal(policy_network_name((enum policy_network)99), "unknown");
}

TESTS(cmocka_unit_test(defaults_deny_everything), cmocka_unit_test(set_refuses_bad_values_and_changes_nothing),
      cmocka_unit_test(set_takes_what_people_type), cmocka_unit_test(set_stops_at_the_end_of_a_list),
      cmocka_unit_test(set_stops_at_the_longest_value), cmocka_unit_test(names_are_those_of_the_keys))
