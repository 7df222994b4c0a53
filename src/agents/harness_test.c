/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for agents/harness: which words and tools pass, for every entry. */
#include "base/test.h"

#include <stdio.h>

#include "agents/harness.h"
#include "agents/trial.h"

/* The flags that reopen a way past the box, whichever harness they are of. */
static void harness_refuses_flags_that_reopen_a_path(void **state)
{
    (void)state;
    static const char *const bad[] = {"--tools",
                                      "--allowedTools",
                                      "--allowed-tools",
                                      "--available-tools",
                                      "--allow-tool",
                                      "--allow-all-tools",
                                      "--allow-all",
                                      "--allow-all-paths",
                                      "--mcp-config",
                                      "--additional-mcp-config",
                                      "--settings",
                                      "--setting-sources",
                                      "--add-dir",
                                      "--include-directories",
                                      "--dangerously-skip-permissions",
                                      "--dangerously-bypass-approvals-and-sandbox",
                                      "--plugin-dir",
                                      "--trust-folder",
                                      "--sandbox",
                                      "-s",
                                      "-C",
                                      "--cd",
                                      "--profile",
                                      "--enable",
                                      "--yolo",
                                      "-y",
                                      "--approval-mode",
                                      "--extensions",
                                      "-e",
                                      "--agent",
                                      "--full-auto",
                                      "--remote",
                                      "--attach",
                                      "--never-heard-of",
                                      "--",
                                      NULL};
    for (const struct harness *const *h = harness_all; *h; h++)
        for (const char *const *b = bad; *b; b++) {
            char *word[] = {(char *)*b, (char *)"x", NULL};
            own_words out = {0};
            struct pale_err e;
            assert_true(harness_pass(*h, word, 2, &out, &e) < 0);
            assert_non_null(strstr(e.text, *b));
        }
}

static void harness_lets_no_single_word_be_a_command(void **state)
{
    (void)state;
    for (const struct harness *const *h = harness_all; *h; h++) {
        char *word[] = {(char *)"mcp", NULL};
        own_words out = {0};
        struct pale_err e;
        if (harness_pass(*h, word, 1, &out, &e) == 0)
            assert_string_equal(out.item[0], "mcp ");
        else
            assert_true((*h)->needs_command);
    }
}

static void harness_refuses_values_that_look_like_flags(void **state)
{
    (void)state;
    for (const struct harness *const *h = harness_all; *h; h++)
        for (const struct harness_flag *f = (*h)->flags; f->name; f++) {
            char *word[] = {(char *)f->name, (char *)"--tools", NULL};
            own_words out = {0};
            struct pale_err e;
            assert_true(harness_pass(*h, word, 2, &out, &e) < 0);
        }
}

static void harness_lets_only_listed_settings_pass(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        bool passes;
    } rows[] = {{"model=x", true},
                {"model_providers.a-b.base_url=\"http://x\"", true},
                {"model_providers.a.auth={command=\"x\"}", false},
                {"model_providers={a={auth={command=\"x\"}}}", false},
                {"model_providers.a={}", false},
                {"model_providers..base_url=x", false},
                {"model_providers.a.b.base_url=x", false},
                {"notify=[\"sh\"]", false},
                {"\"model\"=x", false},
                {"mcp_servers.x.command=\"sh\"", false},
                {"model", false},
                {"modelx=1", false},
                {"", false}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *word[] = {(char *)"-c", (char *)rows[i].value, NULL};
        own_words out = {0};
        struct pale_err e;
        assert_int_equal(harness_pass(&harness_codex, word, 2, &out, &e) == 0, rows[i].passes);
    }
}

static void harness_has_no_flag_twice(void **state)
{
    (void)state;
    for (const struct harness *const *h = harness_all; *h; h++)
        for (const struct harness_flag *f = (*h)->flags; f->name; f++)
            for (const struct harness_flag *g = f + 1; g->name; g++)
                assert_string_not_equal(f->name, g->name);
}

static void harness_expects_the_box_and_no_other_server(void **state)
{
    (void)state;
    static const char *const never[] = {
        "Bash",  "Read",      "Write", "Edit", "exec_command", "run_shell_command", "write_file", "bash", "edit",
        "write", "web_fetch", "?",     "",     "pale",         "mcp__other__exec",  "exec",       NULL};
    for (const struct harness *const *h = harness_all; *h; h++) {
        char name[64];
        snprintf(name, sizeof(name), "%sexec", (*h)->tool_prefix);
        assert_true(harness_expects(*h, name));
        assert_false(harness_expects(*h, (*h)->tool_prefix));
        for (const char *const *n = never; *n; n++)
            assert_false(harness_expects(*h, *n));
    }
}

static void versions_compare_by_their_numbers(void **state)
{
    (void)state;
    assert_true(trial_compare_versions("2.1.9", "2.1.325") < 0);
    assert_true(trial_compare_versions("2.2.0", "2.1.325") > 0);
    assert_int_equal(trial_compare_versions("1.0.0", "1.0.0"), 0);
    assert_true(trial_compare_versions("", "0.0.1") < 0);
}

TESTS(cmocka_unit_test(harness_refuses_flags_that_reopen_a_path), cmocka_unit_test(harness_lets_no_single_word_be_a_command),
      cmocka_unit_test(harness_refuses_values_that_look_like_flags), cmocka_unit_test(harness_lets_only_listed_settings_pass),
      cmocka_unit_test(harness_has_no_flag_twice), cmocka_unit_test(harness_expects_the_box_and_no_other_server),
      cmocka_unit_test(versions_compare_by_their_numbers))
