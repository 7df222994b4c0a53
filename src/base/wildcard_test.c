/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for base/wildcard. */
#include "base/test.h"

#include <stdio.h>

#include "base/wildcard.h"

#define CASE(f) cmocka_unit_test(f)

static void names_fit(void **state)
{
    (void)state;
    static const struct {
        const char *part, *name;
        bool fits;
    } rows[] = {
        {"a", "a", true},         {"a", "b", false},      {"", "", true},
        {"", "a", false},         {"*", "", true},        {"*", "abc", true},
        {"*.c", "x.c", true},     {"*.c", ".c", true},    {"*.c", "x.cc", false},
        {"a*b*c", "aXbYc", true}, {"a*b*c", "abc", true}, {"a*b*c", "acb", false},
        {"?", "a", true},         {"?", "", false},       {"?", "é", true},
        {"??", "é", false},       {"?", "\xff", true},    {"[a-c]x", "bx", true},
        {"[a-c]x", "dx", false},  {"[!a-c]", "d", true},  {"[^a-c]", "a", false},
        {"[]]", "]", true},       {"[]-]", "-", true},    {"[a", "[a", true},
        {"[", "[", true},         {"[é-ü]", "ö", true},   {"\\*", "*", true},
        {"\\*", "x", false},      {"\\", "\\", true},     {"[\\]]", "]", true},
        {"[a-]", "-", true},      {"a**b", "axxb", true}, {"*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false},
        {"x.{c}", "x.{c}", true}, {"[!a]", "", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (wildcard_name_fits(rows[i].part, rows[i].name) != rows[i].fits)
            fail_msg("%s against %s", rows[i].part, rows[i].name);
}

static struct wildcard w;

/* 1 match, 0 none but something below may be, -1 nothing below either. */
static int try_path(const char *path, bool dotted)
{
    struct wildcard_state s, next;
    char name[256];
    wildcard_begin(&w, &s);
    for (const char *at = path; *at;) {
        size_t n = strcspn(at, "/");
        snprintf(name, sizeof(name), "%.*s", (int)n, at);
        wildcard_step(&w, &s, name, dotted && name[0] == '.', &next);
        s = next;
        at += n;
        at += *at == '/';
    }
    return wildcard_is_match(&w, &s) ? 1 : wildcard_goes_on(&w, &s) ? 0 : -1;
}

static void paths_match(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *path;
        int want;
    } rows[] = {
        {"*.c", "a.c", 1},           {"*.c", "x/a.c", -1},         {"**/*.c", "a.c", 1},     {"**/*.c", "x/y/a.c", 1},
        {"**/*.c", "x/y", 0},        {"src/**/*.c", "src/a.c", 1}, {"src/**/*.c", "src", 0}, {"src/**/*.c", "lib", -1},
        {"src/**", "src", 0},        {"src/**", "src/a/b", 1},     {"**", "a", 1},           {"**", "a/b/c", 1},
        {"**/x/**/y", "a/x/y", 1},   {"**/x/**/y", "x/b/c/y", 1},  {"**/x/**/y", "x/b", 0},  {"./a//b", "a/b", 1},
        {"a/b/", "a/b", 1},          {"*.{c,h}", "a.h", 1},        {"*.{c,h}", "a.x", -1},   {"{a,b/{c,d}}/e", "b/d/e", 1},
        {"{a,b/{c,d}}/e", "a/e", 1}, {"{a,b/{c,d}}/e", "b", 0},    {"{a}", "{a}", 1},        {"a{,.bak}", "a", 1},
        {"a{,.bak}", "a.bak", 1},    {"\\{a,b\\}", "{a,b}", 1},    {"**/**/a", "a", 1},
    };
    struct pale_err e;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(wildcard_parse(&w, rows[i].pattern, false, &e), 0);
        if (try_path(rows[i].path, false) != rows[i].want)
            fail_msg("%s against %s", rows[i].pattern, rows[i].path);
    }
}

static void a_single_name_matches_anywhere_if_wanted(void **state)
{
    (void)state;
    struct pale_err e;
    assert_int_equal(wildcard_parse(&w, "*.{c,h}", true, &e), 0);
    assert_true(try_path("a.c", false) == 1 && try_path("x/y/a.h", false) == 1 && try_path("x/y/a.o", false) == 0);
    assert_int_equal(wildcard_parse(&w, "x/*.c", true, &e), 0);
    assert_true(try_path("x/a.c", false) == 1 && try_path("y/x/a.c", false) == -1);
}

static void names_with_a_dot_need_a_part_with_one(void **state)
{
    (void)state;
    struct pale_err e;
    assert_int_equal(wildcard_parse(&w, "{**,.github/**}/*.yml", false, &e), 0);
    assert_true(try_path(".github/x/a.yml", true) == 1 && try_path(".cache/a.yml", true) == -1 && try_path(".cache/a.yml", false) == 1);
}

static void bad_patterns_say_why(void **state)
{
    (void)state;
    struct pale_err e;
    char long_one[PATTERN_BYTES_MAX + 2];
    memset(long_one, 'a', sizeof(long_one) - 1);
    long_one[sizeof(long_one) - 1] = 0;
    const char *const bad[] = {"",       "/",
                               ".",      "../a",
                               "a/../b", "/a",
                               "{a,/b}", "{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}",
                               long_one, "a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(wildcard_parse(&w, bad[i], false, &e), -PALE_BAD_INPUT);
        assert_true(e.text[0]);
    }
}

static void the_folder_before_a_pattern_is_cut_off(void **state)
{
    (void)state;
    static const char *const rows[][3] = {
        {"/a/b/**/*.c", "/a/b", "**/*.c"}, {"/*", "/", "*"}, {"/a", "/", "a"}, {"a/b", "a", "b"}, {"*.c", "", "*.c"}, {"/a/b/", "/a", "b/"},
        {"/a/{b,c}/d", "/a", "{b,c}/d"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char folder[64];
        assert_string_equal(wildcard_split(rows[i][0], folder, sizeof(folder)), rows[i][2]);
        assert_string_equal(folder, rows[i][1]);
    }
    char small[4];
    assert_string_equal(wildcard_split("/long/name/*", small, sizeof(small)), "/long/name/*");
    assert_string_equal(small, "");
}

TESTS(CASE(names_fit), CASE(paths_match), CASE(a_single_name_matches_anywhere_if_wanted), CASE(names_with_a_dot_need_a_part_with_one),
      CASE(bad_patterns_say_why), CASE(the_folder_before_a_pattern_is_cut_off))
