/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for net/authority. */
#include "base/test.h"

#include "net/authority.h"

static struct authority parsed(const char *text)
{
    struct authority a;
    if (!authority_parse(&(struct http_text){text, strlen(text)}, &a))
        fail_msg("%s was refused", text);
    return a;
}

static void names_addresses_and_ports_are_told_apart(void **state)
{
    (void)state;
    struct authority a = parsed("Example.com.:8080");
    assert_true(a.name.len == 12 && a.port == 8080 && !a.is_six);
    a = parsed("[::1]:65535");
    assert_true(a.name.len == 3 && a.name.at[0] == ':' && a.port == 65535 && a.is_six);
    a = parsed("[fe80::1.2.3.4]");
    assert_true(a.name.len == 13 && a.port == 0 && a.is_six);
    a = parsed("10.0.0.1");
    assert_true(a.name.len == 8 && a.port == 0);
}

static void what_another_could_read_as_another_host_is_refused(void **state)
{
    (void)state;
    static const char *const rows[] = {"",         ":80",   "a:",
                                       "a:0",      "a:080", "a:65536",
                                       "a:999999", "a:8 0", "a:+80",
                                       "a b",      "a@b",   "a%62",
                                       "a\\b",     "a/b",   "a?b",
                                       "a#b",      "a,b",   "a:80:80",
                                       "[::1",     "[]",    "[::1]80",
                                       "[::1]:",   "::1",   "[fe80::1%25eth0]",
                                       "[v1.a]",   "a\tb",  "evil.com:443.allowed.com",
                                       "a;b",      "'a'",   "a!",
                                       "*.a"};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct authority a;
        if (authority_parse(&(struct http_text){rows[i], strlen(rows[i])}, &a))
            fail_msg("%s was taken", rows[i]);
    }
    struct authority a;
    assert_false(authority_parse(&(struct http_text){"a\0b", 3}, &a));
}

static void a_name_has_at_most_255_bytes(void **state)
{
    (void)state;
    char name[AUTHORITY_NAME_MAX + 1];
    struct authority a;
    memset(name, 'a', sizeof(name));
    assert_true(authority_parse(&(struct http_text){name, AUTHORITY_NAME_MAX}, &a));
    assert_false(authority_parse(&(struct http_text){name, AUTHORITY_NAME_MAX + 1}, &a));
}

static void two_are_the_same_by_name_and_port(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        bool same;
    } rows[] = {
        {"a", "A", true},   {"a:80", "a", true},         {"a:81", "a", false}, {"a", "b", false},
        {"a", "a.", false}, {"[::1]", "[::1]:80", true}, {"[a]", "a", false},  {"ab", "a", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct authority a = parsed(rows[i].a), b = parsed(rows[i].b);
        assert_int_equal(authority_is_same(&a, &b, 80), rows[i].same);
        assert_int_equal(authority_is_same(&b, &a, 80), rows[i].same);
    }
}

static void a_name_has_no_byte_that_ends_a_line(void **state)
{
    (void)state;
    assert_true(authority_is_name(&(struct http_text){"a-b.c_d", 7}, false));
    assert_true(authority_is_name(&(struct http_text){"::1", 3}, true));
    assert_false(authority_is_name(&(struct http_text){"::1", 3}, false));
    assert_false(authority_is_name(&(struct http_text){"a\r\nb", 4}, false));
    assert_false(authority_is_name(&(struct http_text){"", 0}, false));
}

TESTS(cmocka_unit_test(names_addresses_and_ports_are_told_apart), cmocka_unit_test(what_another_could_read_as_another_host_is_refused),
      cmocka_unit_test(a_name_has_at_most_255_bytes), cmocka_unit_test(two_are_the_same_by_name_and_port),
      cmocka_unit_test(a_name_has_no_byte_that_ends_a_line))
