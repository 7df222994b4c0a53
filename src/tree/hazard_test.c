/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for tree/hazard. */
#include "tree/treetest.h"

#include "policy/guard.h"
#include "tree/hazard.h"

static const char *class_of(const char *path)
{
    struct hazard_question q = {.path = path, .kind = LEAF_FILE, .mode = 0644};
    struct hazard h = hazard_of(&q);
    assert_true((h.class == HAZARD_NONE) == (h.reason == NULL));
    return hazard_word(h.class);
}

static void names_of_the_threat_list_are_known_at_any_depth(void **state)
{
    (void)state;
    static const struct {
        const char *path, *class;
    } rows[] = {
        {".git/hooks/post-index-change", "git"},
        {".git", "git"},
        {".gitmodules", "git"},
        {".lfsconfig", "git"},
        {".gitattributes", "git"},
        {".claude/settings.json", "agent"},
        {".mcp.json", "agent"},
        {"CLAUDE.md", "agent"},
        {"AGENTS.md", "agent"},
        {".codex/config.toml", "agent"},
        {".cursor/rules/x", "agent"},
        {".vscode/tasks.json", "editor"},
        {".idea/x", "editor"},
        {".devcontainer/devcontainer.json", "editor"},
        {"x.code-workspace", "editor"},
        {".nvim.lua", "editor"},
        {".envrc", "shell"},
        {".tool-versions", "shell"},
        {"mise.toml", "shell"},
        {".bashrc", "shell"},
        {".gdbinit", "shell"},
        {"flake.nix", "shell"},
        {".ripgreprc", "shell"},
        {".github/workflows/x.yml", "ci"},
        {".gitlab-ci.yml", "ci"},
        {"Jenkinsfile", "ci"},
        {"package.json", "package"},
        {".npmrc", "package"},
        {"Makefile", "package"},
        {"rules.mk", "package"},
        {"justfile", "package"},
        {"Cargo.toml", "package"},
        {"build.rs", "package"},
        {".cargo/config.toml", "package"},
        {"pyproject.toml", "package"},
        {"setup.py", "package"},
        {"conftest.py", "package"},
        {"sitecustomize.py", "package"},
        {".bazelrc", "package"},
        {".mvn/x", "package"},
        {"Dockerfile", "package"},
        {"Vagrantfile", "package"},
        {".husky/pre-commit", "package"},
        {".pre-commit-config.yaml", "package"},
        {"vite.config.ts", "package"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char deep[200];
        snprintf(deep, sizeof(deep), "a/b/c/d/e/%s", rows[i].path);
        if (strcmp(class_of(rows[i].path), rows[i].class) != 0 || strcmp(class_of(deep), rows[i].class) != 0)
            fail_msg("%s: %s, deep: %s", rows[i].path, class_of(rows[i].path), class_of(deep));
    }
    static const char *const harmless[] = {"src/main.c",    "README.md",  "git/config", "a.git.txt", "Makefile.txt",
                                           "xpackage.json", ".gitignore", "docs/hooks", "mk"};
    for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++)
        if (strcmp(class_of(harmless[i]), "none") != 0)
            fail_msg("%s: %s", harmless[i], class_of(harmless[i]));
}

static void every_name_of_the_default_guard_list_has_a_class(void **state)
{
    (void)state;
    for (size_t i = 0; guard_defaults[i]; i++)
        if (strcmp(class_of(guard_defaults[i]), "none") == 0)
            fail_msg("%s", guard_defaults[i]);
}

static void twins_of_names_are_seen_through(void **state)
{
    (void)state;
    static const char *const git[] = {".Git/hooks/x",
                                      ".GIT",
                                      ".git./config",
                                      ".git /config",
                                      ".g\xe2\x80\x8cit/config",
                                      ".git::$INDEX_ALLOCATION/x",
                                      "git~1/config",
                                      ".git\xef\xbb\xbf",
                                      "a/.gi\xe2\x80\x8dt"};
    for (size_t i = 0; i < sizeof(git) / sizeof(git[0]); i++)
        if (strcmp(class_of(git[i]), "git") != 0)
            fail_msg("%s: %s", git[i], class_of(git[i]));
    assert_string_equal(class_of(".vs\xe2\x80\x8b"
                                 "code/tasks.json"),
                        "editor");
    assert_string_equal(class_of("pac\xe2\x84\xaa"
                                 "age.json"),
                        "package");
    assert_string_equal(class_of(".v\xc5\xbf"
                                 "code/tasks.json"),
                        "editor");
    assert_string_equal(class_of("READ\xe2\x80\xaeME"), "name");
    assert_string_equal(class_of("notes. "), "name");
    assert_string_equal(class_of("bad\xff"), "name");
    assert_string_equal(class_of("\xc3\xa9t\xc3\xa9"), "none");
}

static const char *class_of_link(const char *path, const char *to)
{
    struct hazard_question q = {.path = path, .kind = LEAF_LINK, .mode = 0777, .head = to, .head_len = strlen(to), .is_new = true};
    return hazard_word(hazard_of(&q).class);
}

static void links_that_lead_out_or_to_guarded_names_are_told(void **state)
{
    (void)state;
    assert_string_equal(class_of_link("a", "/etc/passwd"), "link");
    assert_string_equal(class_of_link("a", "../x"), "link");
    assert_string_equal(class_of_link("a/b/c", "../../../x"), "link");
    assert_string_equal(class_of_link("a", ".git/hooks"), "link");
    assert_string_equal(class_of_link("a/b", "../.Git/hooks"), "link");
    assert_string_equal(class_of_link("a", "b/../../x"), "link");
    assert_string_equal(class_of_link("a", "p/q/d/../../z"), "link"); /* d may be a link itself */
    assert_string_equal(class_of_link("a", ".."), "link");
    assert_string_equal(class_of_link("a/b/c", "../../x"), "none");
    assert_string_equal(class_of_link("a", "b/c"), "none");
    assert_string_equal(class_of_link("a", "."), "none");
}

static void what_can_be_run_is_told_when_it_is_new(void **state)
{
    (void)state;
    struct hazard_question q = {.path = "run", .kind = LEAF_FILE, .mode = 0755, .is_new = true};
    assert_int_equal(hazard_of(&q).class, HAZARD_EXECUTABLE);
    q = (struct hazard_question){.path = "run", .kind = LEAF_FILE, .mode = 0755, .was_mode = 0755};
    assert_int_equal(hazard_of(&q).class, HAZARD_NONE);
    q = (struct hazard_question){.path = "run", .kind = LEAF_FILE, .mode = 0755, .was_mode = 0644};
    assert_int_equal(hazard_of(&q).class, HAZARD_EXECUTABLE);
    q = (struct hazard_question){.path = "run", .kind = LEAF_FILE, .mode = 0644, .head = "#!/bin/sh", .head_len = 9, .is_new = true};
    assert_int_equal(hazard_of(&q).class, HAZARD_EXECUTABLE);
    q = (struct hazard_question){.path = "run", .kind = LEAF_FILE, .mode = 04755, .was_mode = 0755};
    assert_int_equal(hazard_of(&q).class, HAZARD_SETID);
    q = (struct hazard_question){.path = "run", .kind = LEAF_FOLDER, .mode = 0755, .is_new = true};
    assert_int_equal(hazard_of(&q).class, HAZARD_NONE);
}

static void names_of_the_policy_count(void **state)
{
    (void)state;
    char *names[] = {(char *)"secret.d"};
    struct policy_strings guard = {names, 1};
    struct hazard_question q = {.path = "a/Secret.D/x", .kind = LEAF_FILE, .mode = 0644, .guard = &guard};
    assert_int_equal(hazard_of(&q).class, HAZARD_GUARD);
}

static void repositories_without_git_in_their_name_are_found(void **state)
{
    (void)state;
    own_fd layer = folder("layer"), tree = folder("tree");
    int fds[] = {layer, tree};
    put("layer/sub/HEAD", "ref: refs/heads/x");
    put("layer/sub/config", "x");
    close(folder("tree/sub/objects"));
    assert_false(hazard_is_repository(fds, 2, "sub"));
    close(folder("tree/sub/refs"));
    assert_true(hazard_is_repository(fds, 2, "sub"));
    assert_false(hazard_is_repository(fds, 2, ""));
    put("tree/w/HEAD", "x");
    put("tree/w/commondir", "x");
    assert_true(hazard_is_repository(fds, 2, "w"));
}

TESTS(cmocka_unit_test(names_of_the_threat_list_are_known_at_any_depth), cmocka_unit_test(every_name_of_the_default_guard_list_has_a_class),
      cmocka_unit_test(twins_of_names_are_seen_through), cmocka_unit_test(links_that_lead_out_or_to_guarded_names_are_told),
      cmocka_unit_test(what_can_be_run_is_told_when_it_is_new), cmocka_unit_test(names_of_the_policy_count),
      CASE(repositories_without_git_in_their_name_are_found))
