/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for net/target. */
#include "base/test.h"

#include "net/target.h"

static struct target t;

static bool parse(const char *text)
{
    return target_parse(&(struct http_text){text, strlen(text)}, &t);
}

static void segments_and_pairs_are_decoded_once(void **state)
{
    (void)state;
    assert_true(parse("/v1/boxes/a%2Fb%2541/files?path=%2Ftmp%2Fa+b%26c&follow&n=0"));
    assert_int_equal(t.segments, 4);
    assert_string_equal(t.segment[2], "a/b%41");
    assert_string_equal(target_get(&t, "path"), "/tmp/a b&c");
    assert_string_equal(target_get(&t, "follow"), "");
    assert_string_equal(target_get(&t, "n"), "0");
    assert_null(target_get(&t, "pat"));
    assert_true(parse("/"));
    assert_int_equal(t.segments, 0);
    assert_true(parse("/?a=b=c"));
    assert_string_equal(target_get(&t, "a"), "b=c");
    assert_true(parse("/a+b"));
    assert_string_equal(t.segment[0], "a+b");
}

static void what_is_doubtful_is_refused(void **state)
{
    (void)state;
    static const char *const rows[] = {"",
                                       "a",
                                       "//",
                                       "/a//b",
                                       "/a/",
                                       "/%",
                                       "/%4",
                                       "/%zz",
                                       "/a%00b",
                                       "/a#b",
                                       "/a?",
                                       "/a?=b",
                                       "/a?b&b",
                                       "/a?b=1&b=2",
                                       "/a?b&",
                                       "/a?&b",
                                       "/a?%62&b",
                                       "/a?b=%",
                                       "/a b",
                                       "/\x7f",
                                       "/1/2/3/4/5/6/7/8/9/10/11/12/13",
                                       "/?a&b&c&d&e&f&g&h&i&j&k&l&m&n&o&p&q"};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (parse(rows[i]))
            fail_msg("%s was taken", rows[i]);
}

static void the_longest_has_room(void **state)
{
    (void)state;
    static char text[HTTP_TARGET_MAX + 2];
    memset(text, 'a', HTTP_TARGET_MAX);
    text[0] = '/';
    assert_true(target_parse(&(struct http_text){text, HTTP_TARGET_MAX}, &t));
    assert_int_equal(strlen(t.segment[0]), HTTP_TARGET_MAX - 1);
    assert_false(target_parse(&(struct http_text){text, HTTP_TARGET_MAX + 1}, &t));
}

TESTS(cmocka_unit_test(segments_and_pairs_are_decoded_once), cmocka_unit_test(what_is_doubtful_is_refused),
      cmocka_unit_test(the_longest_has_room))
