/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for net/httpflow. */
#include "base/test.h"

#include "net/httpflow.h"

static struct httpflow flow;
static struct httprequest request;
static char out[HTTPREQUEST_BYTES_MAX];

/* Asks and lets pass; what the server gets is in out. */
static size_t pass_head(const char *text)
{
    size_t used = 0;
    assert_int_equal(httpflow_ask(&flow, text, strlen(text), &request, &used), 1);
    size_t n = httpflow_forward(&flow, &request, &request.host.name, out, sizeof(out));
    assert_true(n > 0);
    return used;
}

static int answer(const char *text)
{
    size_t pass = 0;
    return httpflow_answer(&flow, text, strlen(text), &pass);
}

#define GET "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
#define EMPTY "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

static void a_request_is_due_when_the_response_before_has_ended(void **state)
{
    (void)state;
    static const char two[] = GET "GET /second HTTP/1.1\r\nHost: other\r\n\r\n";
    size_t used;
    flow = (struct httpflow){0};
    size_t first = pass_head(two);
    assert_int_equal(httpflow_ask(&flow, two + first, strlen(two) - first, &request, &used), 0);
    assert_int_equal(answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na"), 0);
    assert_int_equal(httpflow_ask(&flow, two + first, strlen(two) - first, &request, &used), 0);
    assert_int_equal(answer("b"), 1);
    assert_int_equal(httpflow_ask(&flow, two + first, strlen(two) - first, &request, &used), 1);
    assert_true(http_is(&request.host.name, "other"));
}

static void a_response_that_nobody_awaits_ends_the_flow(void **state)
{
    (void)state;
    size_t used;
    flow = (struct httpflow){0};
    pass_head(GET);
    assert_int_equal(answer(EMPTY), 1);
    assert_int_equal(answer(EMPTY), -1);
    assert_true(httpflow_is_over(&flow));
    assert_int_equal(httpflow_ask(&flow, GET, strlen(GET), &request, &used), -1);
    assert_int_equal(request.wrong, HTTPREQUEST_OVER);
}

static void a_body_goes_by_count_and_is_the_last(void **state)
{
    (void)state;
    uint8_t room[4];
    flow = (struct httpflow){0};
    pass_head("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n");
    assert_non_null(strstr(out, "\r\nConnection: close\r\n"));
    assert_int_equal(httpflow_unseen(&flow), 10);
    struct pieces p = {.in = (const uint8_t *)"01234567" GET, .in_len = 8, .out = room, .room = sizeof(room)};
    assert_int_equal(httpflow_body(&flow, &p), 0);
    assert_true(p.used == 4 && p.made == 4 && memcmp(room, "0123", 4) == 0);
    httpflow_passed(&flow, 4);
    p = (struct pieces){.in = (const uint8_t *)"89" GET, .in_len = strlen("89" GET), .out = room, .room = sizeof(room)};
    assert_int_equal(httpflow_body(&flow, &p), 1);
    assert_int_equal(p.used, 2);
    assert_int_equal(answer(EMPTY), 1);
    assert_true(httpflow_is_over(&flow));
}

static void a_response_before_the_body_has_ended_ends_the_flow(void **state)
{
    (void)state;
    uint8_t room[64];
    flow = (struct httpflow){0};
    pass_head("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n");
    assert_int_equal(answer(EMPTY), 1);
    assert_true(httpflow_is_over(&flow));
    assert_int_equal(httpflow_unseen(&flow), 0);
    struct pieces p = {.in = (const uint8_t *)GET, .in_len = strlen(GET), .out = room, .room = sizeof(room)};
    assert_int_equal(httpflow_body(&flow, &p), -1);
    assert_int_equal(p.made, 0);
}

/* All of a body in steps of that size with so much room; what the server gets, taken out of its chunks. NULL: it was refused. */
static const char *through(const char *body, size_t piece, size_t room, size_t *ret_used)
{
    static char data[200];
    struct chunks back = {0};
    size_t len = 0, n = strlen(body), at = 0;
    int end = 0;
    flow = (struct httpflow){0};
    pass_head("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    while (end == 0 && at < n) {
        uint8_t made[100];
        struct pieces p = {.in = (const uint8_t *)body + at, .in_len = n - at < piece ? n - at : piece, .out = made, .room = room};
        if ((end = httpflow_body(&flow, &p)) < 0)
            return NULL;
        at += p.used;
        for (size_t got = 0, used, more; got < p.made; got += used) {
            const char *d;
            assert_true(chunks_take(&back, (const char *)made + got, p.made - got, &used, &d, &more) >= 0);
            memcpy(data + len, d, more);
            len += more;
        }
    }
    assert_int_equal(end == 1, back.state == CHUNKS_DONE);
    data[len] = 0;
    *ret_used = at;
    return data;
}

static void chunks_are_framed_anew_in_pieces_of_every_size(void **state)
{
    (void)state;
    static const char body[] = "5\r\nhello\r\n0001\r\n,\r\n1A\r\n abcdefghijklmnopqrstuvwxy\r\n0\r\n\r\n" GET;
    for (size_t piece = 1; piece < sizeof(body); piece++)
        for (size_t room = HTTPFLOW_CHUNK_ROOM + 1; room <= 100; room += 9) {
            size_t used;
            assert_string_equal(through(body, piece, room, &used), "hello, abcdefghijklmnopqrstuvwxy");
            assert_int_equal(used, strlen(body) - strlen(GET));
        }
}

static void chunks_that_two_could_read_differently_are_refused(void **state)
{
    (void)state;
    static const char *const rows[] = {"5;a=b\r\nhello\r\n0\r\n\r\n",
                                       "5\nhello\r\n0\r\n\r\n",
                                       "0x5\r\nhello\r\n0\r\n\r\n",
                                       "5 \r\nhello\r\n0\r\n\r\n",
                                       "5\r\nhello0\r\n\r\n",
                                       "0\r\nHost: evil\r\n\r\n",
                                       "-1\r\n",
                                       "1FFFFFFFF\r\n",
                                       "0;\r\n\r\n",
                                       "\r\n0\r\n\r\n",
                                       "5\r\nhello\n0\r\n\r\n",
                                       "0\r\n\n"};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (size_t piece = 1; piece <= strlen(rows[i]); piece++) {
            size_t used;
            if (through(rows[i], piece, 100, &used) || !httpflow_is_over(&flow))
                fail_msg("row %zu was taken", i);
        }
}

static void only_a_change_that_was_asked_for_opens_the_flow(void **state)
{
    (void)state;
    static const char go[] = "HTTP/1.1 101 Go\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";
    size_t used, pass = 0;
    flow = (struct httpflow){0};
    pass_head("GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n");
    assert_int_equal(httpflow_unseen(&flow), 0);
    assert_int_equal(answer(go), 1);
    assert_true(flow.state == HTTPFLOW_OPEN && httpflow_unseen(&flow) == UINT64_MAX);
    assert_int_equal(httpflow_answer(&flow, "xyz", 3, &pass), 0);
    assert_int_equal(pass, 3);
    flow = (struct httpflow){0};
    pass_head("GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n");
    assert_int_equal(answer(go), 0);
    assert_int_equal(httpflow_unseen(&flow), 0);
    assert_int_equal(httpflow_ask(&flow, GET, strlen(GET), &request, &used), 0);
}

static void a_request_that_cannot_pass_ends_the_flow(void **state)
{
    (void)state;
    size_t used;
    flow = (struct httpflow){0};
    assert_int_equal(httpflow_ask(&flow, "GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n", 36, &request, &used), -1);
    assert_true(request.wrong == HTTPREQUEST_MISMATCH && httpflow_is_over(&flow));
    flow = (struct httpflow){0};
    assert_int_equal(httpflow_ask(&flow, "CONNECT a:1 HTTP/1.1\r\n\r\n", 24, &request, &used), 1);
    assert_int_equal(httpflow_forward(&flow, &request, &request.host.name, out, sizeof(out)), 0);
    assert_int_equal(flow.state, HTTPFLOW_ASK);
}

TESTS(cmocka_unit_test(a_request_is_due_when_the_response_before_has_ended), cmocka_unit_test(a_response_that_nobody_awaits_ends_the_flow),
      cmocka_unit_test(a_body_goes_by_count_and_is_the_last), cmocka_unit_test(a_response_before_the_body_has_ended_ends_the_flow),
      cmocka_unit_test(chunks_are_framed_anew_in_pieces_of_every_size),
      cmocka_unit_test(chunks_that_two_could_read_differently_are_refused),
      cmocka_unit_test(only_a_change_that_was_asked_for_opens_the_flow), cmocka_unit_test(a_request_that_cannot_pass_ends_the_flow))
