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

static void secret_values_are_known(void **state)
{
    (void)state;
    static const char *const secret[] = {"sk-ant-api03-abcdefghijklmnop",
                                         "ghp_abcdefghijklmnopqrst",
                                         "x=glpat-abcdefgh1234",
                                         "AKIAIOSFODNN7EXAMPLE",
                                         "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln",
                                         "postgres://user:hunter2@db/x",
                                         "Bearer abcdefghijk",
                                         "-----BEGIN OPENSSH PRIVATE KEY-----",
                                         "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
                                         "d41d8cd98f00b204e9800998ecf8427e",
                                         "123e4567-e89b-12d3-a456-426614174000",
                                         "{\"token\": \"Zm9vYmFyQmF6MTIzNDU2Nzg5MA\"}"};
    static const char *const plain[] = {"",
                                        "en_US.UTF-8",
                                        "C.UTF-8",
                                        "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                                        "/home/agent/Projects/Some-Long-Name2024/src/Main3",
                                        "src/main/java/com/Example2/Foo3Bar",
                                        "https://example.org/a/b?c=d",
                                        "https://user@example.org",
                                        "-O2 -g -fstack-protector-strong",
                                        "xterm-256color",
                                        "Europe/Berlin",
                                        "2026-01-01T00:00:00Z",
                                        "12345678901234567890123456789012345",
                                        "the quick brown fox jumps over the lazy dog"};
    for (size_t i = 0; i < sizeof(secret) / sizeof(secret[0]); i++)
        if (!policy_is_secret_value(secret[i]))
            fail_msg("%s", secret[i]);
    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
        if (policy_is_secret_value(plain[i]))
            fail_msg("%s", plain[i]);
}

static void what_is_allowed_comes_in_unless_it_looks_like_a_secret(void **state)
{
    (void)state;
    own_policy p =
        POLICY("env.allow", "API_KEY", "env.allow", "LANG", "env.allow", "MY_*", "env.pass", "GH_TOKEN", "env.allow", "GH_TOKEN");
    assert_int_equal(policy_env_verdict(&p, "API_KEY", "x"), ENV_HELD_BACK);
    assert_int_equal(policy_env_verdict(&p, "API_KEY", NULL), ENV_HELD_BACK);
    assert_int_equal(policy_env_verdict(&p, "LANG", "C"), ENV_COMES_IN);
    assert_int_equal(policy_env_verdict(&p, "LANG", "ghp_abcdefghijklmnopqrst"), ENV_HELD_BACK);
    assert_int_equal(policy_env_verdict(&p, "MY_COLOUR", "red"), ENV_COMES_IN);
    assert_int_equal(policy_env_verdict(&p, "MY_TOKEN", "x"), ENV_HELD_BACK);
    assert_int_equal(policy_env_verdict(&p, "MY_COLOUR", "ghp_abcdefghijklmnopqrst"), ENV_HELD_BACK); /* nobody has named it */
    assert_int_equal(policy_env_verdict(&p, "GH_TOKEN", "ghp_abcdefghijklmnopqrst"), ENV_COMES_IN);
    assert_int_equal(policy_env_verdict(&p, "HOME", "/root"), ENV_STAYS_OUT);
    set(&p, "env.pass", "API_KEY");
    assert_int_equal(policy_env_verdict(&p, "API_KEY", "x"), ENV_COMES_IN);
    set(&p, "env.set", "LANG=C");
    assert_int_equal(policy_env_verdict(&p, "LANG", "ghp_abcdefghijklmnopqrst"), ENV_STAYS_OUT);
}

TESTS(cmocka_unit_test(secret_values_are_known), cmocka_unit_test(what_is_allowed_comes_in_unless_it_looks_like_a_secret),
      cmocka_unit_test(secret_names_are_known), cmocka_unit_test(patterns_never_pass_a_secret_but_its_name_does),
      cmocka_unit_test(nothing_passes_by_default_nor_with_a_bad_name), cmocka_unit_test(what_is_set_does_not_pass))
