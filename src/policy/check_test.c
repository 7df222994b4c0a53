/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for policy/check: the rules over a whole policy, and what this build cannot hold. */
#include "policy/policy_test.h"

#include <stdio.h>

static void assert_refused(const struct policy *p, const char *says)
{
    struct pale_err e = {0};
    assert_true(policy_check(p, &e) < 0);
    assert_has(e.text, says);
}

static void check_takes_the_defaults_and_nested_places(void **state)
{
    (void)state;
    own_policy p = POLICY(),
               q = POLICY("project", "ro", "project.path", "/w/p", "write", "/w/p/build", "read", "/w/p/build/keep", "volumes",
                          "/w/p/doc:/doc:ro", "volume_root", "/w", "network", "filtered", "network.egress", "x.org=ask");
    struct pale_err e = {0};
    assert_int_equal(policy_check(&p, &e), 0);
    assert_int_equal(policy_check(&q, &e), 0);
}

static void check_refuses_what_no_single_key_shows(void **state)
{
    (void)state;
    own_policy twice = POLICY("read", "/a", "write", "/a"), over = POLICY("read", "/a", "volumes", "/b:/a");
    own_policy double_volume = POLICY("volumes", "/b:/a", "volumes", "/c:/a");
    assert_refused(&twice, "write: /a is also named under read");
    assert_refused(&over, "volumes: /a is also named under read");
    assert_refused(&double_volume, "volumes: /a is also named under volumes");
    own_policy outside = POLICY("volume_root", "/srv", "volumes", "/srvx/a:/a");
    assert_refused(&outside, "does not lie beneath volume_root");
    own_policy none = POLICY("network.egress", "x.org"), host = POLICY("network", "host", "network.egress", "x.org=deny");
    own_policy open = POLICY("network", "open", "network.egress", "x.org=ask");
    assert_refused(&none, "network.egress: rules do nothing with network none");
    assert_refused(&host, "network.egress: rules do nothing with network host");
    assert_refused(&open, "nothing to ask");
    own_policy lone = POLICY("project.path", "/w/p");
    assert_refused(&lone, "path without a mode");
}

static void check_refuses_a_way_around_the_guard(void **state)
{
    (void)state;
    own_policy inside = POLICY("project", "live", "project.path", "/w/p", "volumes", "/w/p/.git:/g");
    own_policy around = POLICY("project", "live", "project.path", "/w/p", "volumes", "/w:/g:rw");
    own_policy live = POLICY("project", "live", "project.path", "/w/p", "write", "/w/p/x");
    own_policy hooks = POLICY("project", "ro", "project.path", "/w/p", "write", "/w/p/sub/.git/hooks");
    assert_refused(&inside, "second, unguarded name");
    assert_refused(&around, "second, unguarded name");
    assert_refused(&live, "writable already");
    assert_refused(&hooks, "guarded (.git/hooks)");
}

static void check_refuses_a_policy_that_has_no_canonical_text(void **state)
{
    (void)state;
    own_policy p = POLICY();
    char path[3000];
    memset(path, 'a', sizeof(path) - 1);
    path[sizeof(path) - 1] = 0;
    for (size_t i = 0; i < sizeof(path) - 1; i += 200)
        path[i] = '/';
    for (int i = 0; i < 100; i++) {
        memcpy(path + 1, (char[]){(char)('a' + i / 10), (char)('a' + i % 10)}, 2);
        set(&p, "read", path);
    }
    struct pale_err e = {0};
    assert_int_equal(policy_check(&p, &e), -PALE_LIMIT);
}

static void held_refuses_what_this_build_cannot_hold(void **state)
{
    (void)state;
    static const struct {
        const char *key, *value, *says;
    } bad[] = {
        {"tier", "gvisor", "tier: gvisor"},
        {"tier", "microvm", "tier: microvm"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        own_policy p = POLICY(bad[i].key, bad[i].value);
        struct pale_err e = {0};
        assert_int_equal(policy_held(&p, &e), -PALE_UNSUPPORTED);
        assert_has(e.text, bad[i].says);
        assert_has(e.text, "; ");
    }
}

static void held_takes_what_holds(void **state)
{
    (void)state;
    own_policy p = POLICY("tier", "native", "project", "live", "limits.disk", "1G", "scratch", "memory", "limits.tokens", "5",
                          "limits.cost_usd", "1", "limits.memory", "1G", "write", "/a");
    struct pale_err e = {0};
    assert_int_equal(policy_held(&p, &e), 0);
    p.scratch = SCRATCH_DISK; /* whether a disk can be held to it is seen where the disk is */
    assert_int_equal(policy_held(&p, &e), 0);
    p.network = NETWORK_OPEN; /* where money can be spent, nothing counts it yet */
    assert_int_equal(policy_held(&p, &e), -PALE_UNSUPPORTED);
    assert_has(e.text, "limits.tokens");
}

TESTS(cmocka_unit_test(check_takes_the_defaults_and_nested_places), cmocka_unit_test(check_refuses_what_no_single_key_shows),
      cmocka_unit_test(check_refuses_a_way_around_the_guard), cmocka_unit_test(check_refuses_a_policy_that_has_no_canonical_text),
      cmocka_unit_test(held_refuses_what_this_build_cannot_hold), cmocka_unit_test(held_takes_what_holds))
