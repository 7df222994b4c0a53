/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for net/httprequest. */
#include "base/test.h"

#include <stdio.h>

#include "net/httprequest.h"

static struct httprequest request;
static size_t used;

static int parse(const char *text)
{
    return httprequest_parse(text, strlen(text), &request, &used);
}

/* What the server would get for it. */
static const char *written(const char *text)
{
    static char out[HTTPREQUEST_BYTES_MAX + 1];
    if (parse(text) != 1)
        fail_msg("%s: %s", text, httprequest_say(request.wrong));
    out[httprequest_write(&request, &request.host.name, false, out, sizeof(out) - 1)] = 0;
    return out;
}

static void a_request_is_written_from_what_was_understood(void **state)
{
    (void)state;
    static const struct {
        const char *in, *out;
    } rows[] = {
        {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\n\r\n"},
        {"GET /x?y=1 HTTP/1.1\r\nA:b\r\nhOST:  a:80 \r\n\r\n", "GET /x?y=1 HTTP/1.1\r\nHost: a\r\nA: b\r\n\r\n"},
        {"GET http://A:80/x HTTP/1.1\r\nHost: a\r\n\r\n", "GET /x HTTP/1.1\r\nHost: a\r\n\r\n"},
        {"GET HTTP://a:8080 HTTP/1.1\r\nHost: a:8080\r\n\r\n", "GET / HTTP/1.1\r\nHost: a:8080\r\n\r\n"},
        {"GET http://[::1]?q HTTP/1.1\r\nHost: [::1]\r\n\r\n", "GET /?q HTTP/1.1\r\nHost: [::1]\r\n\r\n"},
        {"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"},
        {"GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n", "GET / HTTP/1.0\r\nHost: a\r\nConnection: close\r\n\r\n"},
        {"GET / HTTP/1.1\r\nHost: a\r\nConnection: Close, TE\r\nTE: trailers\r\nKeep-Alive: 5\r\nProxy-Connection: keep-alive\r\n"
         "Proxy-Authorization: Basic eA==\r\nPROXY-X: y\r\nAccept: */*\r\n\r\n",
         "GET / HTTP/1.1\r\nHost: a\r\nAccept: */*\r\nConnection: close\r\n\r\n"},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0010\r\nExpect: 100-continue\r\nB: c\r\n\r\n",
         "POST / HTTP/1.1\r\nHost: a\r\nB: c\r\nContent-Length: 10\r\n\r\n"},
        {"POST / HTTP/1.1\r\nContent-Length: 0\r\nHost: a\r\n\r\n", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"},
        {"POST / HTTP/1.1\r\nTransfer-Encoding:\tChunked\r\nHost: a\r\n\r\n",
         "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"},
        {"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n",
         "GET / HTTP/1.1\r\nHost: a\r\n\r\n"},
        {"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: WebSocket\r\nSec-WebSocket-Key: x\r\nConnection: keep-alive, Upgrade\r\n\r\n",
         "GET / HTTP/1.1\r\nHost: a\r\nSec-WebSocket-Key: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"},
        {"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\n\r\n"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_string_equal(written(rows[i].in), rows[i].out);
        assert_string_equal(written(rows[i].out), rows[i].out);
    }
}

static void every_prefix_of_a_request_needs_more(void **state)
{
    (void)state;
    static const char text[] = "POST http://a/b HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nConnection: close\r\n\r\n";
    for (size_t n = 0; n < strlen(text); n++)
        assert_int_equal(httprequest_parse(text, n, &request, &used), 0);
    assert_int_equal(parse(text), 1);
    assert_int_equal(used, strlen(text));
}

static void requests_that_two_could_read_differently_are_refused(void **state)
{
    (void)state;
    static const struct {
        enum httprequest_wrong wrong;
        const char *text;
    } rows[] = {
        {HTTPREQUEST_MISMATCH, "GET http://evil/ HTTP/1.1\r\nHost: a\r\n\r\n"},
        {HTTPREQUEST_MISMATCH, "GET http://a:81/ HTTP/1.1\r\nHost: a\r\n\r\n"},
        {HTTPREQUEST_MISMATCH, "GET http://a./ HTTP/1.1\r\nHost: a\r\n\r\n"},
        {HTTPREQUEST_USER, "GET http://a@evil/ HTTP/1.1\r\nHost: a\r\n\r\n"},
        {HTTPREQUEST_USER, "GET http://u:p@a/ HTTP/1.1\r\nHost: a\r\n\r\n"},
        {HTTPREQUEST_SCHEME, "GET https://a/ HTTP/1.1\r\nHost: a\r\n\r\n"},
        {HTTPREQUEST_SCHEME, "GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n"},
        {HTTPREQUEST_SCHEME, "GET a:80 HTTP/1.1\r\nHost: a\r\n\r\n"},
        {HTTPREQUEST_TARGET, "GET http:/// HTTP/1.1\r\nHost: a\r\n\r\n"},
        {HTTPREQUEST_TARGET, "GET http://a%00/ HTTP/1.1\r\nHost: a\r\n\r\n"},
        {HTTPREQUEST_TARGET, "GET http://a\\/ HTTP/1.1\r\nHost: a\r\n\r\n"},
        {HTTPREQUEST_TARGET, "GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n"},
        {HTTPREQUEST_TARGET, "GET http://a/b?c#d HTTP/1.1\r\nHost: a\r\n\r\n"},
        {HTTPREQUEST_TARGET, "GET * HTTP/1.1\r\nHost: a\r\n\r\n"},
        {HTTPREQUEST_TARGET, "OPTIONS ** HTTP/1.1\r\nHost: a\r\n\r\n"},
        {HTTPREQUEST_TARGET, "GET a HTTP/1.1\r\nHost: a\r\n\r\n"},
        {HTTPREQUEST_NO_HOST, "GET / HTTP/1.0\r\n\r\n"},
        {HTTPREQUEST_NO_HOST, "GET http://a/ HTTP/1.1\r\n\r\n"},
        {HTTPREQUEST_HOST, "GET / HTTP/1.1\r\nHost: a@b\r\n\r\n"},
        {HTTPREQUEST_HOST, "GET / HTTP/1.1\r\nHost: a, b\r\n\r\n"},
        {HTTPREQUEST_HOST, "GET / HTTP/1.1\r\nHost: http://a\r\n\r\n"},
        {HTTPREQUEST_HEAD, "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"},
        {HTTPREQUEST_HEAD, "GET / HTTP/1.1\r\nHost:\r\n\r\n"},
        {HTTPREQUEST_HEAD, "GET / HTTP/1.1\r\nHost : a\r\n\r\n"},
        {HTTPREQUEST_HEAD, "GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n"},
        {HTTPREQUEST_HEAD, "GET / HTTP/1.1\nHost: a\r\n\r\n"},
        {HTTPREQUEST_HEAD, "GET / HTTP/1.1\r\nHost: a\r\nA: \xc3\xa4\r\n\r\n"},
        {HTTPREQUEST_HEAD, "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"},
        {HTTPREQUEST_HEAD, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"},
        {HTTPREQUEST_HEAD, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n"},
        {HTTPREQUEST_HEAD, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x1\r\n\r\n"},
        {HTTPREQUEST_HEAD, "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"},
        {HTTPREQUEST_HEAD, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n"},
        {HTTPREQUEST_CODING, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, chunked\r\n\r\n"},
        {HTTPREQUEST_CODING, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n"},
        {HTTPREQUEST_CODING, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n\r\n"},
        {HTTPREQUEST_VERSION, "GET / HTTP/2.0\r\nHost: a\r\n\r\n"},
        {HTTPREQUEST_VERSION, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
        {HTTPREQUEST_TRAILER, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n"},
        {HTTPREQUEST_OPTION, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close, Host\r\n\r\n"},
        {HTTPREQUEST_OPTION, "GET / HTTP/1.1\r\nHost: a\r\nConnection: Authorization\r\n\r\n"},
        {HTTPREQUEST_DISGUISE, "POST / HTTP/1.1\r\nHost: a\r\nContent_Length: 5\r\n\r\n"},
        {HTTPREQUEST_DISGUISE, "POST / HTTP/1.1\r\nHost: a\r\nTRANSFER_ENCODING: chunked\r\n\r\n"},
        {HTTPREQUEST_TARGET, "CONNECT a HTTP/1.1\r\nHost: a\r\n\r\n"},
        {HTTPREQUEST_TARGET, "CONNECT http://a:443/ HTTP/1.1\r\nHost: a\r\n\r\n"},
        {HTTPREQUEST_MISMATCH, "CONNECT a:443 HTTP/1.1\r\nHost: b:443\r\n\r\n"},
        {HTTPREQUEST_MISMATCH, "CONNECT a:443 HTTP/1.1\r\nHost: a:80\r\n\r\n"},
        {HTTPREQUEST_TUNNEL, "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\nContent-Length: 0\r\n\r\n"},
        {HTTPREQUEST_TUNNEL, "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\nTransfer-Encoding: chunked\r\n\r\n"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (parse(rows[i].text) != -1 || request.wrong != rows[i].wrong)
            fail_msg("row %zu: %s: %s", i, httprequest_say(request.wrong), rows[i].text);
}

static void a_tunnel_is_a_request_of_its_own_and_never_written(void **state)
{
    (void)state;
    static const char *const rows[] = {"CONNECT a:443 HTTP/1.1\r\nHost: A:443\r\n\r\n", "CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n",
                                       "CONNECT a:443 HTTP/1.0\r\n\r\n"};
    char out[HTTPREQUEST_BYTES_MAX];
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(parse(rows[i]), 1);
        assert_true(request.form == HTTPREQUEST_CONNECT && request.host.port == 443 && request.host.name.len == 1);
        assert_int_equal(httprequest_write(&request, &request.host.name, true, out, sizeof(out)), 0);
    }
}

static void a_path_is_plain_only_if_it_leads_to_one_place(void **state)
{
    (void)state;
    static const char *const plain[] = {"/", "/a", "/a/", "/a/b.c", "/a%40b", "/a/...b", "/a?x=/../y", "/.git", "/a+b,c(d)~"};
    static const char *const other[] = {"/%61",   "//",     "/a//b", "/.",       "/a/..",  "/a/../b", "/%2e%2e/b", "/.%2E/",
                                        "/a%2fb", "/a%5Cb", "/a\\b", "/a%00",    "/a%",    "/a%4",    "/a%zz",     "/a;b",
                                        "/..;/b", "/%252e", "/a%0a", "/a%c0%ae", "/a%3fb", "/a%23",   "/...",      "/a%20"};
    char text[100];
    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
        snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", plain[i]);
        if (parse(text) != 1 || !request.is_plain)
            fail_msg("%s", plain[i]);
    }
    for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
        snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", other[i]);
        if (parse(text) != 1 || request.is_plain)
            fail_msg("%s", other[i]);
    }
}

static void what_a_caller_may_refuse_is_told(void **state)
{
    (void)state;
    assert_int_equal(parse("GET / HTTP/1.1\r\nHost: a\r\nX-HTTP-Method-Override: DELETE\r\n\r\n"), 1);
    assert_true(request.has_override);
    assert_int_equal(parse("GET /chat HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"), 1);
    assert_true(request.has_websocket && !request.has_override);
    assert_int_equal(parse("POST / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"), 1);
    assert_false(request.has_websocket);
    assert_int_equal(parse("GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket, h2c\r\n\r\n"), 1);
    assert_false(request.has_websocket);
    assert_int_equal(parse("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n"), 1);
    assert_true(request.wants_continue);
    assert_int_equal(parse("PUT / HTTP/1.0\r\nHost: a\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n"), 1);
    assert_false(request.wants_continue);
    assert_int_equal(parse("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nExpect: 100-continue\r\n\r\n"), 1);
    assert_false(request.wants_continue);
}

static void the_host_that_was_judged_is_the_one_that_is_written(void **state)
{
    (void)state;
    char out[200];
    assert_int_equal(parse("GET / HTTP/1.1\r\nHost: EXAMPLE.org.:81\r\n\r\n"), 1);
    size_t n = httprequest_write(&request, &(struct http_text){"example.org", 11}, true, out, sizeof(out));
    assert_true(n > 0);
    out[n] = 0;
    assert_string_equal(out, "GET / HTTP/1.1\r\nHost: example.org:81\r\nConnection: close\r\n\r\n");
    assert_int_equal(httprequest_write(&request, &(struct http_text){"a\r\nX: y", 7}, true, out, sizeof(out)), 0);
    for (size_t cap = 0; cap < n; cap++)
        assert_int_equal(httprequest_write(&request, &(struct http_text){"example.org", 11}, true, out, cap), 0);
}

static void the_largest_head_fits_when_it_is_written_anew(void **state)
{
    (void)state;
    static char text[HTTP_HEAD_MAX + 1], out[HTTPREQUEST_BYTES_MAX], name[AUTHORITY_NAME_MAX];
    memset(name, 'n', sizeof(name));
    for (unsigned count = HTTP_HEADERS_MAX - 1; count <= HTTP_HEADERS_MAX; count++) {
        size_t n = (size_t)snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost:a\r\n");
        for (unsigned i = 2; i < count; i++)
            n += (size_t)snprintf(text + n, sizeof(text) - n, "A:b\r\n");
        n += (size_t)snprintf(text + n, sizeof(text) - n, "C:");
        memset(text + n, 'd', HTTP_HEAD_MAX - 4 - n);
        memcpy(text + HTTP_HEAD_MAX - 4, "\r\n\r\n", 4);
        assert_int_equal(httprequest_parse(text, HTTP_HEAD_MAX, &request, &used), count < HTTP_HEADERS_MAX ? 1 : -1);
        if (count < HTTP_HEADERS_MAX)
            assert_true(httprequest_write(&request, &(struct http_text){name, sizeof(name)}, true, out, sizeof(out)) > HTTP_HEAD_MAX);
    }
    assert_int_equal(request.wrong, HTTPREQUEST_HEAD_LONG);
}

TESTS(cmocka_unit_test(a_request_is_written_from_what_was_understood), cmocka_unit_test(every_prefix_of_a_request_needs_more),
      cmocka_unit_test(requests_that_two_could_read_differently_are_refused),
      cmocka_unit_test(a_tunnel_is_a_request_of_its_own_and_never_written), cmocka_unit_test(a_path_is_plain_only_if_it_leads_to_one_place),
      cmocka_unit_test(what_a_caller_may_refuse_is_told), cmocka_unit_test(the_host_that_was_judged_is_the_one_that_is_written),
      cmocka_unit_test(the_largest_head_fits_when_it_is_written_anew))
