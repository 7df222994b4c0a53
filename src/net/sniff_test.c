/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for net/sniff. */
#include "base/test.h"

#include "net/sniff.h"

/* The bytes that decide, and nothing before the last of them. */
static void each_is_told_by_its_last_byte_and_not_before(void **state)
{
    (void)state;
    static const struct {
        enum sniff is;
        const char *text;
    } rows[] = {
        {SNIFF_TLS, "\x16\x03"},
        {SNIFF_UNKNOWN, "\x16\x02"},
        {SNIFF_UNKNOWN, "\x15"},
        {SNIFF_UNKNOWN, "\x80"}, /* SSL 2 */
        {SNIFF_UNKNOWN, "\x01"},
        {SNIFF_HTTP, "GET /"},
        {SNIFF_HTTP, "PROPFIND /"},
        {SNIFF_HTTP, "ABCDEFGHIJKLMNOP /"},
        {SNIFF_UNKNOWN, "ABCDEFGHIJKLMNOPQ"},
        {SNIFF_HTTP, "ABCDEFGHIJKLMNOP http://"},
        {SNIFF_HTTP, "GET http://"},
        {SNIFF_HTTP, "GET HTtp://"},
        {SNIFF_UNKNOWN, "GET https"},
        {SNIFF_HTTP, "OPTIONS *"},
        {SNIFF_UNKNOWN, "GET *"},
        {SNIFF_HTTP, "CONNECT a"},
        {SNIFF_HTTP, "CONNECT ["},
        {SNIFF_UNKNOWN, "CONNECT \r"},
        {SNIFF_HTTP2, "PRI *"},
        {SNIFF_SSH, "SSH-"},
        {SNIFF_UNKNOWN, "SSH_"},
        {SNIFF_UNKNOWN, "g"},
        {SNIFF_UNKNOWN, "\r"},
        {SNIFF_UNKNOWN, " "},
        {SNIFF_UNKNOWN, "GET\t"},
        {SNIFF_UNKNOWN, "GET  "},
        {SNIFF_UNKNOWN, "QUIT\r"},
        {SNIFF_UNKNOWN, "USER ha"},
        {SNIFF_UNKNOWN, "EHLO e"},
        {SNIFF_UNKNOWN, "RFB 0"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const uint8_t *p = (const uint8_t *)rows[i].text;
        size_t n = strlen(rows[i].text);
        assert_true(n <= SNIFF_BYTES_MAX);
        for (size_t k = 0; k < n; k++)
            if (sniff(p, k) != SNIFF_MORE)
                fail_msg("row %zu is told by %zu bytes", i, k);
        if (sniff(p, n) != rows[i].is)
            fail_msg("row %zu: %d", i, sniff(p, n));
    }
}

static void what_follows_changes_nothing(void **state)
{
    (void)state;
    static const char text[] = "GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n";
    for (size_t n = 11; n < sizeof(text); n++)
        assert_int_equal(sniff((const uint8_t *)text, n), SNIFF_HTTP);
}

TESTS(cmocka_unit_test(each_is_told_by_its_last_byte_and_not_before), cmocka_unit_test(what_follows_changes_nothing))
