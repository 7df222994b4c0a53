/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for base/quote. */
#include "base/test.h"

#include "base/quote.h"

static void check(const char *in, size_t n, const char *want)
{
    own_buf b = {0};
    buf_init(&b, 4096);
    quote_text(&b, in, n, 1000);
    assert_string_equal(buf_text(&b), want);
}

static void quote_shows_escapes_and_bidi_marks(void **state)
{
    (void)state;
    check("plain", 5, "plain");
    check("a\nb\x1b[31m", 8, "a\\nb\\x1b[31m");
    check("\xe2\x80\xaegpj", 6, "\\u{202e}gpj");
    check("\xff\xc0\x80", 3, "\\xff\\xc0\\x80");
    check("\xc2\x9b", 2, "\\x9b");
    check("a\0b", 3, "a\\x00b");
    check("gr\xc3\xbc\xc3\x9f", 6, "gr\xc3\xbc\xc3\x9f");
    check("back\\slash", 10, "back\\\\slash");
}

static void quote_again_leaves_what_was_quoted(void **state)
{
    (void)state;
    own_buf b = {0};
    buf_init(&b, 4096);
    quote_again(&b, "a\\nb\x1b\n", 6, 1000);
    assert_string_equal(buf_text(&b), "a\\nb\\x1b\\n");
}

static void quote_cuts_what_is_too_long(void **state)
{
    (void)state;
    char out[12];
    quote_into(out, sizeof(out), "0123456789abcdef", 16);
    assert_string_equal(out, "01234567…");
}

TESTS(cmocka_unit_test(quote_shows_escapes_and_bidi_marks), cmocka_unit_test(quote_again_leaves_what_was_quoted),
      cmocka_unit_test(quote_cuts_what_is_too_long))
