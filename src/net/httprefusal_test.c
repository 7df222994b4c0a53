/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for net/httprefusal. */
#include "base/test.h"

#include "net/httphead.h"
#include "net/httprefusal.h"

static char text[HTTPREFUSAL_BYTES_MAX];

static const char *body_of(const struct httprefusal *r)
{
    struct http_head h;
    size_t used, n = httprefusal_write(r, text);
    assert_true(n < sizeof(text) && text[n] == 0);
    assert_int_equal(http_head_parse(text, n, HTTP_RESPONSE, &h, &used), 1);
    assert_true(h.status == r->status && h.close && h.body == HTTP_BODY_LENGTH && used + h.length == n);
    return text + used;
}

static void a_refusal_says_what_why_and_what_to_do(void **state)
{
    (void)state;
    assert_string_equal(body_of(&(struct httprefusal){403, "GET http://a/", "no rule allows a", "pale allow a"}),
                        "pale: GET http://a/ was refused: no rule allows a\npale allow a\n");
    assert_non_null(strstr(text, "HTTP/1.1 403 Forbidden\r\n"));
    assert_string_equal(body_of(&(struct httprefusal){421, "a", "b", NULL}), "pale: a was refused: b\n");
}

static void foreign_text_becomes_no_header_and_no_escape(void **state)
{
    (void)state;
    const char *body = body_of(&(struct httprefusal){400, "x\r\n\r\nHTTP/1.1 200 OK\r\n\x1b[2J", "y\n", "z"});
    assert_null(strchr(body, '\r'));
    assert_null(strchr(body, '\x1b'));
}

static void long_texts_are_cut(void **state)
{
    (void)state;
    static char lots[10000];
    memset(lots, '\xff', sizeof(lots) - 1);
    assert_true(strlen(body_of(&(struct httprefusal){431, lots, lots, lots})) < 1100);
}

TESTS(cmocka_unit_test(a_refusal_says_what_why_and_what_to_do), cmocka_unit_test(foreign_text_becomes_no_header_and_no_escape),
      cmocka_unit_test(long_texts_are_cut))
