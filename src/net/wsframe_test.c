/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for net/wsframe; the examples of RFC 6455 among them. */
#include "base/test.h"

#include <stdlib.h>

#include "net/wsframe.h"

static struct ws_frame f;
static size_t used;

static void the_examples_of_the_standard(void **state)
{
    (void)state;
    static const uint8_t masked[] = {0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58};
    static const uint8_t plain[] = {0x01, 0x03, 'H', 'e', 'l'};
    uint8_t text[8];
    for (size_t n = 0; n < sizeof(masked); n++)
        assert_int_equal(ws_parse(masked, n, HTTP_REQUEST, &f, &used), 0);
    assert_int_equal(ws_parse(masked, sizeof(masked), HTTP_REQUEST, &f, &used), 1);
    assert_true(f.op == WS_TEXT && f.fin && f.len == 5 && used == sizeof(masked));
    ws_unmask(&f, text);
    assert_memory_equal(text, "Hello", 5);
    assert_int_equal(ws_parse(plain, sizeof(plain), HTTP_RESPONSE, &f, &used), 1);
    assert_true(!f.fin && f.len == 3);
    assert_int_equal(ws_parse(masked, sizeof(masked), HTTP_RESPONSE, &f, &used), -WS_PROTOCOL);
    assert_int_equal(ws_parse(plain, sizeof(plain), HTTP_REQUEST, &f, &used), -WS_PROTOCOL);
}

static void heads_of_every_length_read_back(void **state)
{
    (void)state;
    static const size_t lengths[] = {0, 1, 125, 126, 127, 0xffff, 0x10000, WS_PAYLOAD_MAX};
    static const uint8_t mask[4] = {1, 2, 3, 4};
    uint8_t *m = calloc(1, WS_PAYLOAD_MAX + WS_HEAD_MAX);
    assert_non_null(m);
    for (size_t i = 0; i < 2 * sizeof(lengths) / sizeof(lengths[0]); i++) {
        size_t len = lengths[i / 2], head = ws_put_head(m, WS_BINARY, true, len, i % 2 ? mask : NULL);
        enum http_side from = i % 2 ? HTTP_REQUEST : HTTP_RESPONSE;
        assert_true(head <= WS_HEAD_MAX);
        assert_int_equal(ws_parse(m, head + len, from, &f, &used), 1);
        assert_true(f.len == len && used == head + len && f.op == WS_BINARY);
        if (head + len > 0)
            assert_int_equal(ws_parse(m, head + len - 1, from, &f, &used), 0);
    }
    free(m);
}

static void what_is_no_frame_is_refused(void **state)
{
    (void)state;
    static const struct {
        int answer;
        uint8_t bytes[12];
    } rows[] = {
        {-WS_PROTOCOL, {0xc1, 0x80}},                               /* a reserved bit */
        {-WS_PROTOCOL, {0x83, 0x80}},                               /* an unknown kind */
        {-WS_PROTOCOL, {0x8b, 0x80}},                               /* an unknown control */
        {-WS_PROTOCOL, {0x09, 0x80}},                               /* half a ping */
        {-WS_PROTOCOL, {0x89, 0xfe, 0, 126}},                       /* a long ping */
        {-WS_PROTOCOL, {0x82, 0xfe, 0, 125}},                       /* not the shortest length */
        {-WS_PROTOCOL, {0x82, 0xff, 0, 0, 0, 0, 0, 0, 0xff, 0xff}}, /* nor here */
        {-WS_PROTOCOL, {0x82, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0}},    /* beyond 63 bits */
        {-WS_TOO_BIG, {0x82, 0xff, 0, 0, 0, 0, 0, 0x10, 0, 1}},     /* beyond ours */
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (ws_parse(rows[i].bytes, 12, HTTP_REQUEST, &f, &used) != rows[i].answer)
            fail_msg("row %zu", i);
}

static void the_answer_to_a_key(void **state)
{
    (void)state;
    char answer[WS_ACCEPT_BYTES];
    assert_true(ws_accept(&(struct http_text){"dGhlIHNhbXBsZSBub25jZQ==", 24}, answer));
    assert_string_equal(answer, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    assert_false(ws_accept(&(struct http_text){"dGhlIHNhbXBsZSBub25jZQ=", 23}, answer));
    assert_false(ws_accept(&(struct http_text){"dGhlIHNhbXBsZSBub25jZQA=", 24}, answer));
    assert_false(ws_accept(&(struct http_text){"dGhlIHNhbXBs ZSBub25jQ==", 24}, answer));
}

TESTS(cmocka_unit_test(the_examples_of_the_standard), cmocka_unit_test(heads_of_every_length_read_back),
      cmocka_unit_test(what_is_no_frame_is_refused), cmocka_unit_test(the_answer_to_a_key))
