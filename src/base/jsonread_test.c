/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for base/jsonread. */
#include "base/test.h"

#include <stdlib.h>
#include <string.h>

#include "base/jsonread.h"

static bool good(const char *s)
{
    struct jsonread v;
    return jsonread_parse(s, strlen(s), &v);
}

static void values_are_read(void **state)
{
    (void)state;
    static const char *const texts[] = {"null",   "true", " false ",      "0", "-1.5e+3", "\"\"", "\"a\\u00e9\\n\"", "[]",
                                        "[1, 2]", "{}",   "{\"a\": [{}]}"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_true(good(texts[i]));
}

static void what_is_no_json_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"",           "nul",     "01",        "1.",     ".5",   "1e",       "+1",
                                        "\"",         "\"\\x\"", "\"\\u12\"", "\"\n\"", "[1,]", "[1 2]",    "{\"a\"}",
                                        "{\"a\":1,}", "{a:1}",   "1 2",       "[",      "{",    "\"\xff\"", "\"\xc0\x80\""};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_false(good(texts[i]));
}

static void every_prefix_of_a_value_is_refused(void **state)
{
    (void)state;
    static const char text[] = "{\"items\": [{\"id\": \"x\\u00e9\", \"n\": 12, \"t\": true}, null, \"end\"]}";
    struct jsonread v;
    for (size_t n = 0; n + 1 < sizeof(text) - 1; n++) {
        char *copy = malloc(n + 1);
        memcpy(copy, text, n);
        assert_false(jsonread_parse(copy, n, &v));
        free(copy);
    }
    assert_true(jsonread_parse(text, sizeof(text) - 1, &v));
}

static void nesting_has_an_end(void **state)
{
    (void)state;
    char text[2 * JSONREAD_DEPTH + 8] = "";
    for (int depth = 1; depth <= JSONREAD_DEPTH + 2; depth++) {
        memset(text, '[', (size_t)depth);
        memset(text + depth, ']', (size_t)depth);
        text[2 * depth] = 0;
        if (2 * depth + 1 < (int)sizeof(text))
            assert_int_equal(good(text), depth <= JSONREAD_DEPTH);
        if (depth == JSONREAD_DEPTH + 1)
            break;
    }
}

static void members_come_in_turn(void **state)
{
    (void)state;
    static const char text[] = "{ \"a\" : 1 , \"b\":[ 7 , \"x\" ], \"c\":{}}";
    struct jsonread v, key, item, found;
    size_t pos = 0;
    char name[8];
    uint64_t n = 0;
    assert_true(jsonread_parse(text, strlen(text), &v));
    const char *names[] = {"a", "b", "c"};
    for (int i = 0; i < 3; i++) {
        assert_true(jsonread_next(&v, &pos, &key, &item));
        assert_string_equal(jsonread_text(&key, name, sizeof(name)), names[i]);
    }
    assert_false(jsonread_next(&v, &pos, &key, &item));
    assert_true(jsonread_get(&v, "b", &found) && found.kind == JSONREAD_LIST);
    pos = 0;
    assert_true(jsonread_next(&found, &pos, NULL, &item) && jsonread_u64(&item, &n) && n == 7);
    assert_true(jsonread_next(&found, &pos, NULL, &item) && item.kind == JSONREAD_TEXT);
    assert_false(jsonread_next(&found, &pos, NULL, &item));
    assert_false(jsonread_get(&v, "d", &found));
}

static void texts_lose_their_escapes(void **state)
{
    (void)state;
    struct jsonread v;
    char out[32];
    static const char text[] = "\"a\\\"\\\\\\/\\n\\u00e9\\ud83d\\ude00\\ud800\\u0000z\"";
    assert_true(jsonread_parse(text, strlen(text), &v));
    assert_string_equal(jsonread_text(&v, out, sizeof(out)), "a\"\\/\n\xc3\xa9\xf0\x9f\x98\x80\xef\xbf\xbd\xef\xbf\xbdz");
    assert_string_equal(jsonread_text(&v, out, 4), "a\"\\");
}

static void numbers_are_whole_and_bounded(void **state)
{
    (void)state;
    struct jsonread v;
    uint64_t n = 0;
    assert_true(jsonread_parse("18446744073709551615", 20, &v) && jsonread_u64(&v, &n) && n == UINT64_MAX);
    assert_true(jsonread_parse("18446744073709551616", 20, &v) && !jsonread_u64(&v, &n));
    assert_true(jsonread_parse("-1", 2, &v) && !jsonread_u64(&v, &n));
    assert_true(jsonread_parse("1.5", 3, &v) && !jsonread_u64(&v, &n));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_read),
        cmocka_unit_test(what_is_no_json_is_refused),
        cmocka_unit_test(every_prefix_of_a_value_is_refused),
        cmocka_unit_test(nesting_has_an_end),
        cmocka_unit_test(members_come_in_turn),
        cmocka_unit_test(texts_lose_their_escapes),
        cmocka_unit_test(numbers_are_whole_and_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
