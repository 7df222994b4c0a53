/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for policy/env. */
#include "policy/policy_test.h"

static void secret_names_are_known(void **state)
{
    (void)state;
    static const char *const secret[] = {"GITHUB_TOKEN",   "my_api_key",         "PGPASSWORD",   "DB_PASSWD",
                                         "AWS_PROFILE",    "AWS_REGION",         "DATABASE_URL", "SSH_AUTH_SOCK",
                                         "OPENAI_API_KEY", "ANTHROPIC_BASE_URL", "SESSIONID",    "x_credentials",
                                         "COOKIE_JAR",     "Private_Thing",      "SENTRY_DSN",   "JWT"};
    static const char *const plain[] = {"PATH", "HOME", "LANG", "LC_ALL", "TERM", "EDITOR", "TZ", "CC", "CFLAGS", "VIRTUAL_ENV", "DEBUG"};
    for (size_t i = 0; i < sizeof(secret) / sizeof(secret[0]); i++)
        if (!policy_is_secret_name(secret[i]))
            fail_msg("%s", secret[i]);
    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
        if (policy_is_secret_name(plain[i]))
            fail_msg("%s", plain[i]);
}

static void patterns_never_pass_a_secret_but_its_name_does(void **state)
{
    (void)state;
    own_policy p = POLICY("env.pass", "MY_*", "env.pass", "GH_TOKEN", "env.pass", "AWS_*");
    assert_true(policy_passes_env(&p, "MY_COLOUR"));
    assert_true(policy_passes_env(&p, "MY_"));
    assert_false(policy_passes_env(&p, "MY_TOKEN"));
    assert_false(policy_passes_env(&p, "MYCOLOUR"));
    assert_true(policy_passes_env(&p, "GH_TOKEN"));
    assert_false(policy_passes_env(&p, "GH_TOKEN2"));
    assert_false(policy_passes_env(&p, "AWS_REGION"));
    set(&p, "env.pass", "AWS_REGION");
    assert_true(policy_passes_env(&p, "AWS_REGION"));
}

static void nothing_passes_by_default_nor_with_a_bad_name(void **state)
{
    (void)state;
    own_policy p = POLICY(), q = POLICY("env.pass", "P*");
    assert_false(policy_passes_env(&p, "PATH"));
    assert_true(policy_passes_env(&q, "PATH"));
    assert_false(policy_passes_env(&q, "PALE_SOCKET"));
    assert_false(policy_passes_env(&q, "P=X"));
    assert_false(policy_passes_env(&q, ""));
}

static void what_is_set_does_not_pass(void **state)
{
    (void)state;
    own_policy p = POLICY("env.pass", "LANG", "env.set", "LANG=C");
    assert_false(policy_passes_env(&p, "LANG"));
}

TESTS(cmocka_unit_test(secret_names_are_known), cmocka_unit_test(patterns_never_pass_a_secret_but_its_name_does),
      cmocka_unit_test(nothing_passes_by_default_nor_with_a_bad_name), cmocka_unit_test(what_is_set_does_not_pass))
