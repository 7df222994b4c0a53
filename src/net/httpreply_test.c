/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for net/httpreply. */
#include "base/test.h"

#include "net/httpreply.h"

static struct httpreply reply;

/* Gives the text in steps of that many bytes, what did not pass again. Returns how much passed when it ended, or in all. */
static size_t follow(const char *text, size_t piece, int *ret_end)
{
    size_t n = strlen(text), passed = 0, here = 0;
    *ret_end = 0;
    while (*ret_end == 0 && here < n) {
        size_t pass;
        here = here + piece < n ? here + piece : n;
        *ret_end = httpreply_take(&reply, text + passed, here - passed, &pass);
        passed += pass;
    }
    return passed;
}

struct row {
    const char *text;
    size_t passed;
    enum httpreply_state state;
    int end;
    bool to_head, may_switch, is_last;
};

static void responses_end_where_they_say_in_pieces_of_every_size(void **state)
{
    (void)state;
#define NEXT "HTTP/1.1 200 OK\r\n\r\n"
    static const struct row rows[] = {
        {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc" NEXT, 41, HTTPREPLY_NONE, 1},
        {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab", 40, HTTPREPLY_LENGTH, 0},
        {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" NEXT, 38, HTTPREPLY_NONE, 1},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n" NEXT, 60, HTTPREPLY_NONE, 1},
        {"HTTP/1.1 204 No\r\n\r\n" NEXT, 19, HTTPREPLY_NONE, 1},
        {"HTTP/1.1 304 No\r\nContent-Length: 9\r\n\r\n" NEXT, 38, HTTPREPLY_NONE, 1},
        {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n" NEXT, 38, HTTPREPLY_NONE, 1, .to_head = true},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" NEXT, 47, HTTPREPLY_NONE, 1, .to_head = true},
        {"HTTP/1.1 100 Go\r\n\r\nHTTP/1.1 103 Hint\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx" NEXT, 88,
         HTTPREPLY_NONE, 1},
        {"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx" NEXT, 58, HTTPREPLY_NONE, 1, .is_last = true},
        {"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx" NEXT, 39, HTTPREPLY_NONE, 1, .is_last = true},
        {"HTTP/1.1 200 OK\r\n\r\nabc", 22, HTTPREPLY_TO_END, 0, .is_last = true},
        {"HTTP/1.1 200 OK\r\nX: \xc3\xa4\r\nContent-Length: 1\r\n\r\nx" NEXT, 46, HTTPREPLY_NONE, 1},
        {"HTTP/1.1 101 Go\r\nConnection: upgrade\r\n\r\nxyz", 40, HTTPREPLY_SWITCHED, 1, .may_switch = true},
        /* What is not understood ends with the connection. */
        {"HTTP/1.1 101 Go\r\nConnection: upgrade\r\n\r\nxyz", 43, HTTPREPLY_TO_END, 0, .is_last = true},
        {"HTTP/1.1 101 Go\r\n\r\nxyz", 22, HTTPREPLY_TO_END, 0, .may_switch = true, .is_last = true},
        {"HTTP/1.1 200 OK\nA: b\n\nabc", 25, HTTPREPLY_TO_END, 0, .is_last = true},
        {"ICY 200 OK\r\n\r\nabc", 17, HTTPREPLY_TO_END, 0, .is_last = true},
        {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nabc", 60, HTTPREPLY_TO_END, 0, .is_last = true},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;a\r\nabc\r\n0\r\n\r\n", 62, HTTPREPLY_TO_END, 0, .is_last = true},
        {"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 52, HTTPREPLY_TO_END, 0, .is_last = true},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (size_t piece = 1; piece <= strlen(rows[i].text); piece++) {
            int end;
            httpreply_await(&reply, rows[i].to_head, rows[i].may_switch);
            size_t passed = follow(rows[i].text, piece, &end);
            if (passed != rows[i].passed || end != rows[i].end || reply.state != rows[i].state || reply.is_last != rows[i].is_last)
                fail_msg("row %zu in pieces of %zu: %zu passed, %d, state %d", i, piece, passed, end, reply.state);
        }
}

static void what_nobody_awaits_does_not_pass(void **state)
{
    (void)state;
    size_t pass = 9;
    reply = (struct httpreply){0};
    assert_int_equal(httpreply_take(&reply, NEXT, 19, &pass), -1);
    assert_int_equal(pass, 0);
    assert_int_equal(httpreply_take(&reply, NEXT, 0, &pass), 0);
}

static void interim_responses_are_bounded(void **state)
{
    (void)state;
    static const char interim[] = "HTTP/1.1 102 Wait\r\n\r\n";
    size_t pass;
    httpreply_await(&reply, false, false);
    for (int i = 0; i < 16; i++)
        assert_int_equal(httpreply_take(&reply, interim, strlen(interim), &pass), 0);
    assert_int_equal(reply.state, HTTPREPLY_HEAD);
    assert_int_equal(httpreply_take(&reply, interim, strlen(interim), &pass), 0);
    assert_int_equal(reply.state, HTTPREPLY_TO_END);
}

static void bytes_of_a_body_may_pass_unseen(void **state)
{
    (void)state;
    static const char head[] = "HTTP/1.1 200 OK\r\nContent-Length: 5000000000\r\n\r\n";
    static const char chunked[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7\r\nab";
    size_t pass;
    httpreply_await(&reply, false, false);
    assert_int_equal(httpreply_unseen(&reply), 0);
    assert_int_equal(httpreply_take(&reply, head, strlen(head), &pass), 0);
    assert_true(httpreply_unseen(&reply) == 5000000000);
    assert_int_equal(httpreply_passed(&reply, 4999999999), 0);
    assert_int_equal(httpreply_passed(&reply, 1), 1);
    httpreply_await(&reply, false, false);
    assert_int_equal(httpreply_take(&reply, chunked, strlen(chunked), &pass), 0);
    assert_int_equal(httpreply_unseen(&reply), 5);
    assert_int_equal(httpreply_passed(&reply, 5), 0);
    assert_int_equal(httpreply_unseen(&reply), 0);
    assert_int_equal(httpreply_take(&reply, "\r\n0\r\n\r\n", 7, &pass), 1);
}

TESTS(cmocka_unit_test(responses_end_where_they_say_in_pieces_of_every_size), cmocka_unit_test(what_nobody_awaits_does_not_pass),
      cmocka_unit_test(interim_responses_are_bounded), cmocka_unit_test(bytes_of_a_body_may_pass_unseen))
