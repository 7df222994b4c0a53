/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for net/hosturl. */
#include "base/test.h"

#include "net/hosturl.h"

static struct hosturl u;
static struct pale_err e;

static void places_of_daemons_are_read(void **state)
{
    (void)state;
    assert_int_equal(hosturl_parse("unix:///run/user/1000/pale/paled.sock", &u, &e), 0);
    assert_int_equal(u.kind, HOSTURL_UNIX);
    assert_string_equal(u.path, "/run/user/1000/pale/paled.sock");
    assert_int_equal(hosturl_parse("http://127.0.0.1", &u, &e), 0);
    assert_int_equal(u.port, HOSTURL_PORT);
    assert_string_equal(u.host, "127.0.0.1:8839");
    assert_int_equal(hosturl_parse("http://[::1]:81/", &u, &e), 0);
    assert_string_equal(u.name, "::1");
    assert_string_equal(u.host, "[::1]:81");
    assert_int_equal(hosturl_parse("https://boxes.example.org", &u, &e), 0);
    assert_int_equal(u.kind, HOSTURL_HTTPS);
    assert_int_equal(u.port, 443);
    assert_string_equal(u.host, "boxes.example.org");
    assert_int_equal(hosturl_parse("https://192.0.2.7:8443", &u, &e), 0);
    assert_string_equal(u.host, "192.0.2.7:8443");
}

static void a_token_never_goes_in_the_clear(void **state)
{
    (void)state;
    static const char *const rows[] = {"http://example.org",           "http://192.0.2.7:8839",        "http://[2001:db8::1]",
                                       "http://127.0.0.1.example.org", "http://localhost.example.org", "http://128.0.0.1",
                                       "http://[2002:7f00:1::1]",      "http://[64:ff9b::127.0.0.1]",  "http://[::ffff:127.0.0.1]"};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(hosturl_parse(rows[i], &u, &e), -PALE_DENIED);
        assert_non_null(strstr(e.text, "https://"));
    }
    assert_int_equal(hosturl_parse("http://127.8.9.1:1", &u, &e), 0);
    assert_int_equal(hosturl_parse("http://localhost:1", &u, &e), 0);
    assert_int_equal(hosturl_parse("http://LOCALHOST.:1", &u, &e), 0);
    assert_string_equal(u.name, "localhost");
}

static void what_is_doubtful_is_refused(void **state)
{
    (void)state;
    static const char *const rows[] = {"",
                                       "127.0.0.1:8839",
                                       "unix://",
                                       "unix://run/x.sock",
                                       "ftp://x",
                                       "https://",
                                       "https:///x",
                                       "https://a/b",
                                       "https://a?b",
                                       "https://u@a",
                                       "https://a:b",
                                       "https://a:0",
                                       "https://a:65536",
                                       "https://a:80:81",
                                       "https://[::1",
                                       "https://[::1]x",
                                       "https://[a]",
                                       "https://a b",
                                       "https://a\r\nX: y",
                                       "https://-a",
                                       "https://a..b",
                                       "https://127.1",
                                       "https://0x7f000001",
                                       "https://[127.0.0.1]",
                                       "https://::1",
                                       "https://[fe80::1%lo]",
                                       "http://[::1]:",
                                       "HTTPS://a"};
    char longer[400] = "https://";
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(hosturl_parse(rows[i], &u, &e), -PALE_BAD_INPUT);
    memset(longer + 8, 'a', 300);
    assert_int_equal(hosturl_parse(longer, &u, &e), -PALE_BAD_INPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_of_daemons_are_read),
        cmocka_unit_test(a_token_never_goes_in_the_clear),
        cmocka_unit_test(what_is_doubtful_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
