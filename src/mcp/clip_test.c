/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for mcp/clip. */
#include "mcp/clip.h"

#include <string.h>

#include "base/test.h"

static const char *clipped(const char *text, size_t n, size_t step, size_t head, size_t tail, struct buf *ret)
{
    struct clip c;
    assert_true(clip_init(&c, head, tail));
    for (size_t at = 0; at < n; at += step)
        clip_add(&c, text + at, n - at < step ? n - at : step);
    buf_init(ret, 4096);
    clip_write(&c, "[gap]", ret);
    clip_done(&c);
    return buf_text(ret);
}

static void clip_keeps_the_beginning_and_the_end(void **state)
{
    own_buf b = {0};
    (void)state;
    assert_string_equal(clipped("abcdefghij", 10, 3, 3, 4, &b), "abc[gap]ghij");
    buf_done(&b);
    assert_string_equal(clipped("abcdefg", 7, 1, 3, 4, &b), "abcdefg");
    buf_done(&b);
    assert_string_equal(clipped("abcdefgh", 8, 1, 3, 4, &b), "abc[gap]efgh");
    buf_done(&b);
    assert_string_equal(clipped("abcdef", 6, 2, 4, 0, &b), "abcd[gap]");
}

/* However the bytes are cut into pieces. */
static void clip_leaves_out_what_is_for_terminals(void **state)
{
    static const struct {
        const char *in, *out;
    } rows[] = {
        {"\x1b[31mred\x1b[0m", "red"},
        {"a\xc2\x9b"
         "31mb",
         "a\xc2"
         "31mb"},
        {"\xc2\x1b[m\x9b"
         "31m\xc2\x9d\xc2\xa0\xe2\x82\x9b",
         "\xc2"
         "31m\xc2\xc2\xa0\xe2\x82\x9b"},
        {"\x1b]0;title\x07x", "x"},
        {"\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\", "link"},
        {"\x1bPdata\x1b\\y", "y"},
        {"\x1b(Bz", "z"},
        {"a\x1b[1;2\nb", "a\nb"},
        {"1%\r2%\r\n3", "1%\n2%\n3"},
        {"bell\x07 back\x08 nul\x01 del\x7f tab\t", "bell back nul del tab\t"},
        {"\x1b]never ends\nnext", "next"},
        {"caf\xc3\xa9", "caf\xc3\xa9"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (size_t step = 1; step < 5; step++) {
            own_buf b = {0};
            assert_string_equal(clipped(rows[i].in, strlen(rows[i].in), step, 100, 100, &b), rows[i].out);
        }
}

static void clip_says_where_the_gap_begins(void **state)
{
    struct clip c;
    (void)state;
    assert_true(clip_init(&c, 3, 2));
    clip_add(&c, "\x1b[1mabcdefg", 11);
    assert_int_equal(c.raw, 11);
    assert_int_equal(c.raw_head, 6);
    assert_int_equal(c.lost, 2);
    assert_true(clip_is_full(&c));
    clip_done(&c);
}

TESTS(cmocka_unit_test(clip_keeps_the_beginning_and_the_end), cmocka_unit_test(clip_leaves_out_what_is_for_terminals),
      cmocka_unit_test(clip_says_where_the_gap_begins))
