/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for net/hostname: what the threats E6 and E7 try with host strings, among others. */
#include "base/test.h"

#include "net/hostname.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static struct hostname h;

static enum hostname_trouble canon(const char *text)
{
    return hostname_canon(text, strlen(text), false, &h);
}

static void a_name_has_one_form(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"github.com", "github.com"},
        {"GitHub.COM", "github.com"},
        {"github.com.", "github.com"},
        {"XN--MNCHEN-3YA.de", "xn--mnchen-3ya.de"},
        {"r3---sn-4g5e.googlevideo.com", "r3---sn-4g5e.googlevideo.com"},
        {"3com.com", "3com.com"},
        {"1.2.3.4.example", "1.2.3.4.example"},
        {"0xa.0xa9fea9fe.com", "0xa.0xa9fea9fe.com"},
        {"a.b.c.d.e.f", "a.b.c.d.e.f"},
        {"x.0a", "x.0a"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_int_equal(canon(rows[i][0]), HOSTNAME_GOOD);
        assert_string_equal(h.text, rows[i][1]);
        assert_int_equal(h.len, strlen(rows[i][1]));
    }
}

/* Each row is refused for that reason, and what stood in ret stays. */
static void what_is_no_name_is_refused_with_its_reason(void **state)
{
    (void)state;
    static const struct {
        enum hostname_trouble why;
        const char *text;
        size_t len; /* 0: up to its NUL */
    } rows[] = {
        {HOSTNAME_LENGTH, "", 0},
        {HOSTNAME_LENGTH, ".", 0},
        {HOSTNAME_LABEL, "..", 0},
        {HOSTNAME_LABEL, ".github.com", 0},
        {HOSTNAME_LABEL, "github..com", 0},
        {HOSTNAME_LABEL, "github.com..", 0},
        {HOSTNAME_BYTE, "attacker.example\0.google.com", 28},
        {HOSTNAME_BYTE, "github.com\0", 11},
        {HOSTNAME_BYTE, "evil.com\r\n.github.com", 0},
        {HOSTNAME_BYTE, "evil.com\r.github.com", 0},
        {HOSTNAME_BYTE, "evil.com\n.github.com", 0},
        {HOSTNAME_BYTE, "user@github.com", 0},
        {HOSTNAME_BYTE, "evil.com%00.github.com", 0},
        {HOSTNAME_BYTE, "evil.com\\.github.com", 0},
        {HOSTNAME_BYTE, "evil.com#.github.com", 0},
        {HOSTNAME_BYTE, "evil.com?.github.com", 0},
        {HOSTNAME_BYTE, "evil.com/.github.com", 0},
        {HOSTNAME_BYTE, "evil.com\t.github.com", 0},
        {HOSTNAME_BYTE, " github.com", 0},
        {HOSTNAME_BYTE, "github.com ", 0},
        {HOSTNAME_BYTE, "evil.com:443.github.com", 0},
        {HOSTNAME_BYTE, "github.com:443", 0},
        {HOSTNAME_BYTE, "[::1]", 0},
        {HOSTNAME_BYTE, "::1", 0},
        {HOSTNAME_BYTE, "fe80::1%eth0", 0},
        {HOSTNAME_BYTE,
         "github\xef\xbc\x8e"
         "com",
         0}, /* a full-width dot */
        {HOSTNAME_BYTE,
         "github\xe3\x80\x82"
         "com",
         0}, /* an ideographic one */
        {HOSTNAME_BYTE, "m\xc3\xbcnchen.de", 0},
        {HOSTNAME_BYTE, "git\xc2\xadhub.com", 0}, /* a soft hyphen */
        {HOSTNAME_BYTE, "github.com\xff", 0},
        {HOSTNAME_BYTE, "\xe2\x84\xaa.com", 0}, /* the sign of kelvin, which folds to k elsewhere */
        {HOSTNAME_BYTE, "github.com\x7f", 0},
        {HOSTNAME_BYTE, "_dmarc.github.com", 0},
        {HOSTNAME_BYTE, "a_b.github.com", 0},
        {HOSTNAME_BYTE, "*.github.com", 0},
        {HOSTNAME_BYTE, "*", 0},
        {HOSTNAME_BYTE, "a*.github.com", 0},
        {HOSTNAME_HYPHEN, "-github.com", 0},
        {HOSTNAME_HYPHEN, "github-.com", 0},
        {HOSTNAME_HYPHEN, "xn--.com", 0},
        {HOSTNAME_HYPHEN, "github.com-", 0},
        {HOSTNAME_NUMBER, "127.0.0.1", 0},
        {HOSTNAME_NUMBER, "127.0.0.1.", 0},
        {HOSTNAME_NUMBER, "127.1", 0},
        {HOSTNAME_NUMBER, "2852039166", 0},
        {HOSTNAME_NUMBER, "0xa9fea9fe", 0},
        {HOSTNAME_NUMBER, "0XA9FEA9FE", 0},
        {HOSTNAME_NUMBER, "169.254.43518", 0},
        {HOSTNAME_NUMBER, "0251.0376.0251.0376", 0},
        {HOSTNAME_NUMBER, "0xa9.0xfe.0xa9.0xfe", 0},
        {HOSTNAME_NUMBER, "169.254.169.0xfe", 0},
        {HOSTNAME_NUMBER, "x.0x", 0},
        {HOSTNAME_NUMBER, "1.2.3.4.5", 0},
        {HOSTNAME_NUMBER, "github.com.0", 0},
        {HOSTNAME_SINGLE, "localhost", 0},
        {HOSTNAME_SINGLE, "com.", 0},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct hostname before = {.len = 3, .text = "old"}, ret = before;
        size_t n = rows[i].len ? rows[i].len : strlen(rows[i].text);
        assert_int_equal(hostname_canon(rows[i].text, n, false, &ret), rows[i].why);
        assert_memory_equal(&ret, &before, sizeof(ret));
    }
}

static void one_label_is_a_name_where_that_is_meant(void **state)
{
    (void)state;
    assert_int_equal(hostname_canon("LocalHost.", 10, true, &h), HOSTNAME_GOOD);
    assert_string_equal(h.text, "localhost");
    assert_int_equal(hostname_canon("127", 3, true, &h), HOSTNAME_NUMBER);
    assert_int_equal(hostname_canon("", 0, true, &h), HOSTNAME_LENGTH);
}

static void every_byte_but_letters_digits_and_hyphen_is_refused(void **state)
{
    (void)state;
    for (int c = 0; c < 256; c++) {
        char text[] = "aXa.com";
        text[1] = (char)c;
        bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
        assert_int_equal(hostname_canon(text, 7, false, &h), good ? HOSTNAME_GOOD : HOSTNAME_BYTE);
    }
}

static void lengths_go_up_to_those_of_dns(void **state)
{
    (void)state;
    char text[300];
    for (size_t n = 1; n < 70; n++) {
        memset(text, 'a', n);
        memcpy(text + n, ".com", 5);
        assert_int_equal(canon(text), n <= DOMAIN_LABEL_MAX ? HOSTNAME_GOOD : HOSTNAME_LABEL);
    }
    for (size_t n = 240; n < 270; n++) {
        for (size_t i = 0; i < n; i++)
            text[i] = i % 2 && i < n - 1 ? '.' : 'a';
        text[n] = 0;
        assert_int_equal(canon(text), n <= DOMAIN_NAME_MAX ? HOSTNAME_GOOD : HOSTNAME_LENGTH);
        text[n] = '.'; /* which does not count */
        assert_int_equal(hostname_canon(text, n + 1, false, &h), n <= DOMAIN_NAME_MAX ? HOSTNAME_GOOD : HOSTNAME_LENGTH);
    }
}

static void patterns_have_one_form_too(void **state)
{
    (void)state;
    static const struct {
        const char *text, *form; /* NULL: refused */
    } rows[] = {
        {"*.GitHub.com", "*.github.com"},
        {"*.github.com.", "*.github.com"},
        {"github.com", "github.com"},
        {"*", "*"},
        {"*.com", NULL},
        {"*.", NULL},
        {"**", NULL},
        {"*.*.github.com", NULL},
        {"*github.com", NULL},
        {"a.*.com", NULL},
        {"github.*", NULL},
        {"*..github.com", NULL},
        {"*.1.2.3", NULL},
        {".github.com", NULL},
        {"*.127.0.0.1", NULL},
        {"*.git_hub.com", NULL},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        enum hostname_trouble t = hostname_pattern(rows[i].text, strlen(rows[i].text), false, &h);
        assert_int_equal(t == HOSTNAME_GOOD, rows[i].form != NULL);
        if (rows[i].form)
            assert_string_equal(h.text, rows[i].form);
    }
    assert_int_equal(hostname_pattern("*.com", 5, true, &h), HOSTNAME_GOOD);
    assert_int_equal(hostname_pattern("*\0", 2, true, &h), HOSTNAME_BYTE);
}

static void a_star_covers_what_is_beneath_and_nothing_else(void **state)
{
    (void)state;
    static const struct {
        const char *outer, *inner;
        bool covers;
    } rows[] = {
        {"*.github.com", "api.github.com", true},
        {"*.github.com", "a.b.github.com", true},
        {"*.github.com", "github.com", false},
        {"*.github.com", "evilgithub.com", false},
        {"*.github.com", "github.com.evil.org", false},
        {"*.github.com", "api.github.com.org", false},
        {"*.github.com", "*.github.com", true},
        {"*.github.com", "*.api.github.com", true},
        {"*.api.github.com", "*.github.com", false},
        {"*.github.com", "*", false},
        {"github.com", "github.com", true},
        {"github.com", "api.github.com", false},
        {"github.com", "*.github.com", false},
        {"*", "github.com", true},
        {"*", "*.github.com", true},
        {"*", "*", true},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_int_equal(hostname_covers(rows[i].outer, rows[i].inner), rows[i].covers);
}

static void every_trouble_has_words(void **state)
{
    (void)state;
    for (int t = 0; t < HOSTNAME_TROUBLES; t++)
        assert_true(strlen(hostname_trouble_text((enum hostname_trouble)t)) > 10);
}

TESTS(cmocka_unit_test(a_name_has_one_form), cmocka_unit_test(what_is_no_name_is_refused_with_its_reason),
      cmocka_unit_test(one_label_is_a_name_where_that_is_meant), cmocka_unit_test(every_byte_but_letters_digits_and_hyphen_is_refused),
      cmocka_unit_test(lengths_go_up_to_those_of_dns), cmocka_unit_test(patterns_have_one_form_too),
      cmocka_unit_test(a_star_covers_what_is_beneath_and_nothing_else), cmocka_unit_test(every_trouble_has_words))
