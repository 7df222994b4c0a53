/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for net/httphead. */
#include "base/test.h"

#include <stdio.h>

#include "net/httphead.h"

static struct http_head head;
static size_t used;

static int parse(const char *text, enum http_side side)
{
    return http_head_parse(text, strlen(text), side, &head, &used);
}

static void a_request_and_every_prefix_of_it(void **state)
{
    (void)state;
    static const char text[] = "POST /v1/boxes?all=1 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 12\r\nX-A:  b c \t\r\nConnection: "
                               "keep-alive, Upgrade\r\n\r\n{\"name\":1}";
    size_t whole = strlen(text) - 10;
    for (size_t n = 0; n < whole; n++)
        assert_int_equal(http_head_parse(text, n, HTTP_REQUEST, &head, &used), 0);
    for (size_t n = whole; n <= strlen(text); n++) {
        assert_int_equal(http_head_parse(text, n, HTTP_REQUEST, &head, &used), 1);
        assert_int_equal(used, whole);
    }
    assert_true(http_is(&head.method, "POST") && http_is(&head.target, "/v1/boxes?all=1"));
    assert_int_equal(head.body, HTTP_BODY_LENGTH);
    assert_int_equal(head.length, 12);
    assert_true(head.upgrade && !head.close && !head.expects);
    assert_int_equal(head.count, 4);
    assert_int_equal(http_find(&head, "x-a")->len, 3);
    assert_null(http_find(&head, "x-b"));
}

static void requests_that_two_could_read_differently_are_refused(void **state)
{
    (void)state;
    static const struct {
        int answer;
        const char *text;
    } rows[] = {
        {-400, "GET / HTTP/1.1\nHost: a\n\n"},
        {-400, "GET / HTTP/1.1\r\nHost: a\n\r\n"},
        {-400, "GET / HTTP/1.1\rHost: a\r\n\r\n"},
        {-400, "GET / HTTP/1.1\r\nHost : a\r\n\r\n"},
        {-400, "GET / HTTP/1.1\r\nHost: a\r\n folded: b\r\n\r\n"},
        {-400, "GET / HTTP/1.1\r\n: a\r\nHost: a\r\n\r\n"},
        {-400, "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"},
        {-400, "GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer a\r\nauthorization: Bearer b\r\n\r\n"},
        {-400, "GET / HTTP/1.1\r\nHost: a\r\nOrigin: http://a\r\nX: y\r\nOrigin: http://b\r\n\r\n"},
        {-400, "GET / HTTP/1.1\r\nHost:\r\n\r\n"},
        {-400, "GET / HTTP/1.1\r\nA: b\r\n\r\n"},
        {-400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n"},
        {-400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 5\r\n\r\n"},
        {-400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\n"},
        {-400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x5\r\n\r\n"},
        {-400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: \r\n\r\n"},
        {-400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9999999999999999999\r\n\r\n"},
        {-400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"},
        {-400, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"},
        {-501, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"},
        {-501, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n"},
        {-400, "POST / HTTP/1.1\r\nHost: a\r\nExpect: 200-ok\r\n\r\n"},
        {-400, "get / HTTP/1.1\r\nHost: a\r\n\r\n"},
        {-400, "GET  / HTTP/1.1\r\nHost: a\r\n\r\n"},
        {-400, "GET /  HTTP/1.1\r\nHost: a\r\n\r\n"},
        {-400, "GET /\tHTTP/1.1\r\nHost: a\r\n\r\n"},
        {-400, "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n"},
        {-400, "GET / HTTP/1.1 \r\nHost: a\r\n\r\n"},
        {-400, "GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n"},
        {-400, "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"},
        {-400, "GET /\r\nHost: a\r\n\r\n"},
        {-400, "GET / FTP/1.1\r\nHost: a\r\n\r\n"},
        {-505, "GET / HTTP/1.0\r\nHost: a\r\n\r\n"},
        {-505, "GET / HTTP/2.0\r\nHost: a\r\n\r\n"},
        {-400, "GET / HTTP/1.1\r\nHost: a\x01\r\n\r\n"},
        {-400, "GET / HTTP/1.1\r\nHost: \xc3\xa4\r\n\r\n"},
        {-400, "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (parse(rows[i].text, HTTP_REQUEST) != rows[i].answer)
            fail_msg("row %zu: %d: %s", i, parse(rows[i].text, HTTP_REQUEST), rows[i].text);
}

static void too_much_is_told_before_it_is_all_here(void **state)
{
    (void)state;
    static char text[HTTP_HEAD_MAX + 100];
    size_t n = (size_t)snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: a\r\nX: ");
    memset(text + n, 'x', sizeof(text) - n);
    assert_int_equal(http_head_parse(text, HTTP_HEAD_MAX - 1, HTTP_REQUEST, &head, &used), 0);
    assert_int_equal(http_head_parse(text, HTTP_HEAD_MAX, HTTP_REQUEST, &head, &used), -431);
    n = (size_t)snprintf(text, sizeof(text), "GET / HTTP/1.1\r\n");
    for (unsigned i = 0; i <= HTTP_HEADERS_MAX; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "A: b\r\n");
    assert_int_equal(http_head_parse(text, n, HTTP_REQUEST, &head, &used), -431);
    n = (size_t)snprintf(text, sizeof(text), "GET /");
    memset(text + n, 'y', HTTP_TARGET_MAX);
    n += HTTP_TARGET_MAX;
    n += (size_t)snprintf(text + n, sizeof(text) - n, " HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_int_equal(http_head_parse(text, n, HTTP_REQUEST, &head, &used), -414);
}

static void responses_say_where_their_body_ends(void **state)
{
    (void)state;
    assert_int_equal(parse("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", HTTP_RESPONSE), 1);
    assert_true(head.status == 200 && head.body == HTTP_BODY_LENGTH && head.length == 3);
    assert_int_equal(parse("HTTP/1.1 200\r\nTransfer-Encoding: Chunked\r\nConnection: close\r\n\r\n", HTTP_RESPONSE), 1);
    assert_true(head.body == HTTP_BODY_CHUNKED && head.close);
    assert_int_equal(parse("HTTP/1.1 404 Not Found\r\n\r\n", HTTP_RESPONSE), 1);
    assert_int_equal(head.body, HTTP_BODY_CLOSE);
    assert_int_equal(parse("HTTP/1.1 204 No Content\r\n\r\n", HTTP_RESPONSE), 1);
    assert_int_equal(head.body, HTTP_BODY_NONE);
    assert_int_equal(parse("HTTP/1.1 101 Go\r\nConnection: upgrade\r\n\r\n", HTTP_RESPONSE), 1);
    assert_true(head.upgrade && head.body == HTTP_BODY_NONE);
    assert_int_equal(parse("HTTP/1.1 99 X\r\n\r\n", HTTP_RESPONSE), -400);
    assert_int_equal(parse("HTTP/1.0 200 X\r\n\r\n", HTTP_RESPONSE), -400);
    assert_int_equal(parse("HTTP/1.1 2000 X\r\n\r\n", HTTP_RESPONSE), -400);
}

static void messages_of_others_may_be_older_and_their_targets_have_other_forms(void **state)
{
    (void)state;
    assert_int_equal(parse("GET http://a/ HTTP/1.0\r\n\r\n", HTTP_PASSED_REQUEST), 1);
    assert_true(head.minor == 0 && head.close);
    assert_int_equal(parse("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", HTTP_PASSED_REQUEST), 1);
    assert_true(head.minor == 1 && !head.close);
    assert_int_equal(parse("GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", HTTP_PASSED_REQUEST), -400);
    assert_int_equal(parse("GET / HTTP/1.2\r\nHost: a\r\n\r\n", HTTP_PASSED_REQUEST), -505);
    assert_int_equal(parse("GET / HTTP/1.1\r\nHost: a\r\nA: \xe4\r\n\r\n", HTTP_PASSED_REQUEST), -400);
    assert_int_equal(parse("HTTP/1.0 200 OK\r\nA: \xe4\r\n\r\n", HTTP_PASSED_RESPONSE), 1);
    assert_true(head.minor == 0 && head.close && head.body == HTTP_BODY_CLOSE);
    assert_int_equal(parse("HTTP/1.1 200 OK\r\nA: \xe4\r\n\r\n", HTTP_RESPONSE), -400);
    assert_int_equal(parse("HTTP/1.1 200 OK\r\nA: \x7f\r\n\r\n", HTTP_PASSED_RESPONSE), -400);
}

static void words_of_a_list_come_one_by_one(void **state)
{
    (void)state;
    static const char list[] = " ,a,\tbc , d";
    const struct http_text t = {list, strlen(list)};
    struct http_text w;
    size_t at = 0;
    assert_true(http_word(&t, &at, &w) && http_is(&w, "a"));
    assert_true(http_word(&t, &at, &w) && http_is(&w, "BC"));
    assert_true(http_word(&t, &at, &w) && http_is(&w, "d"));
    assert_false(http_word(&t, &at, &w));
}

TESTS(cmocka_unit_test(a_request_and_every_prefix_of_it), cmocka_unit_test(requests_that_two_could_read_differently_are_refused),
      cmocka_unit_test(too_much_is_told_before_it_is_all_here), cmocka_unit_test(responses_say_where_their_body_ends),
      cmocka_unit_test(messages_of_others_may_be_older_and_their_targets_have_other_forms),
      cmocka_unit_test(words_of_a_list_come_one_by_one))
