/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for init/pattern. */
#include "base/test.h"

#include <regex.h>
#include <stdbool.h>

#include "init/pattern.h"

#define CASE(f) cmocka_unit_test(f)

static struct pattern p;

static void patterns_become_what_the_library_takes(void **state)
{
    (void)state;
    static const struct {
        const char *text, *regex, *literal;
        bool plain;
    } rows[] = {
        {"abc", "abc", "abc", true},
        {"a.c", "a\\.c", "a.c", true}, /* fixed, see below */
        {"\\d+x", "[0-9]+x", "x", false},
        {"foo\\(bar", "foo\\(bar", "foo(bar", true},
        {"foo(bar)baz", "foo(bar)baz", "foo", false},
        {"(?:a|b)cd", "(a|b)cd", "cd", false},
        {"abc|def", "abc|def", "", false},
        {"abcd?e", "abcd?e", "abc", false},
        {"abcd*?e", "abcd*e", "abc", false},
        {"abcd+e", "abcd+e", "abcd", false},
        {"abé?x", "abé?x", "ab", false},
        {"ab{2}c", "ab{2}c", "ab", false},
        {"ab{0,2}cd", "ab{0,2}cd", "cd", false},
        {"interface{}", "interface\\{\\}", "interface{}", true},
        {"x{a}", "x\\{a\\}", "x{a}", true},
        {"[\\w.-]+@", "[[:alnum:]_.-]+@", "@", false},
        {"[^\\]\\s]", "[^][:space:]]", "", false},
        {"[\\s\\S]x", ".x", "x", false},
        {"[\\^]", "\\^", "", false},
        {"[[:alpha:]_]", "[[:alpha:]_]", "", false},
        {"[\\[\\\\a-f]", "[\\a-f[]", "", false},
        {"\\t\\x41", "\tA", "\tA", true},
        {"\\bword\\b", "\\bword\\b", "word", false},
        {"\\'\\/\\-", "'/-", "'/-", true},
        {"^ab$", "^ab$", "ab", false},
        {"a]b", "a]b", "a]b", true},
        {"(a(b)c)+def", "(a(b)c)+def", "def", false},
        {"\\é", "é", "é", true},
        {"a[\\n]?b", NULL, NULL, false},
    };
    struct pale_err e;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bool fixed = strcmp(rows[i].text, "a.c") == 0;
        int r = pattern_read(&p, rows[i].text, fixed, false, &e);
        if (!rows[i].regex) {
            assert_int_equal(r, -PALE_BAD_INPUT);
            continue;
        }
        assert_int_equal(r, 0);
        if (strcmp(p.regex, rows[i].regex) != 0 || strcmp(p.literal, rows[i].literal) != 0 || p.plain != rows[i].plain)
            fail_msg("%s became %s with %s", rows[i].text, p.regex, p.literal);
        assert_int_equal(p.literal_len, strlen(p.literal));
        regex_t re;
        assert_int_equal(regcomp(&re, p.regex, REG_EXTENDED | REG_NEWLINE), 0);
        regfree(&re);
    }
}

static void fixed_patterns_stand_for_themselves(void **state)
{
    (void)state;
    struct pale_err e;
    assert_int_equal(pattern_read(&p, "^.[$()|*+?{}\\]-é", true, false, &e), 0);
    assert_string_equal(p.literal, "^.[$()|*+?{}\\]-é");
    assert_true(p.plain);
    regex_t re;
    assert_int_equal(regcomp(&re, p.regex, REG_EXTENDED), 0);
    assert_int_equal(regexec(&re, "x^.[$()|*+?{}\\]-éx", 0, NULL, 0), 0);
    regfree(&re);
}

static void case_is_ignored(void **state)
{
    (void)state;
    struct pale_err e;
    assert_int_equal(pattern_read(&p, "Hello", false, true, &e), 0);
    assert_true(p.plain && strcmp(p.literal, "hello") == 0);
    assert_int_equal(pattern_read(&p, "(?i)HÉllo", false, false, &e), 0);
    assert_true(p.ignore_case && !p.plain && strcmp(p.literal, "llo") == 0);
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    struct pale_err e;
    char long_one[PATTERN_BYTES_MAX + 2];
    memset(long_one, 'a', sizeof(long_one) - 1);
    long_one[sizeof(long_one) - 1] = 0;
    const char *const bad[] = {"",      "a\\", "a\\nb",   "a\nb",    "\\p{L}", "\\1",   "(a)\\1", "(?=x)",   "(?<n>a)", "[a",
                               "[",     "[]",  "[^",      "[[:a",    "[a\\",   "a**",   "a+*",    "a{2}{3}", "a*??",    "\\x0a",
                               "\\xzz", "\\x", "[a-\\d]", "[\\]-a]", "[\\",    "[\\n]", "(?",     long_one};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        e.text[0] = 0;
        if (pattern_read(&p, bad[i], false, false, &e) != -PALE_BAD_INPUT || !e.text[0])
            fail_msg("%s was taken", bad[i]);
    }
}

static void the_longest_pattern_has_room(void **state)
{
    (void)state;
    struct pale_err e;
    static const char *const parts[] = {"[\\w]", "\\w", "\\D", "{", "[^]", "(", "é", "[a-b]", "[[:alpha:]]"};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        char text[PATTERN_BYTES_MAX + 1] = "";
        size_t n = 0, step = strlen(parts[i]);
        for (; n + step <= PATTERN_BYTES_MAX; n += step)
            memcpy(text + n, parts[i], step);
        text[n] = 0;
        (void)!pattern_read(&p, text, false, false, &e);
        text[0] = '['; /* and all of it in one class */
        memmove(text + 1, text + step, n - step + 1);
        (void)!pattern_read(&p, text, false, false, &e);
    }
}

TESTS(CASE(patterns_become_what_the_library_takes), CASE(fixed_patterns_stand_for_themselves), CASE(case_is_ignored),
      CASE(what_cannot_be_is_refused), CASE(the_longest_pattern_has_room))
