/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for box/landed: what a list of what was landed is, and what is none. */
#include "base/test.h"

#include <stdio.h>
#include <string.h>

#include "box/landed.h"

static void sum_line(char *line, size_t cap, const char *text)
{
    char sum[SHA256_HEX];
    sha256_hex(text, strlen(text), sum);
    snprintf(line, cap, "%s %.16s\n", text, sum);
}

#define D "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void make(char *ret, size_t cap)
{
    static const char *const lines[] = {"10 file 420 " D " a", "11 none 0 - b%20c", "12 link 0 " D " d/e", "13 folder 493 - d"};
    char line[512];
    snprintf(ret, cap, "pale landed 1\n");
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        sum_line(line, sizeof(line), lines[i]);
        strncat(ret, line, cap - strlen(ret) - 1);
    }
}

static void a_good_list_is_read(void **state)
{
    char text[2048];
    own_landed l = LANDED_NONE;
    struct pale_err e = {0};
    (void)state;
    make(text, sizeof(text));
    assert_int_equal(landed_parse(text, strlen(text), &l, &e), 0);
    assert_int_equal(l.count, 4);
    assert_string_equal(l.lines[1].path, "b c");
    assert_int_equal(l.lines[0].mode, 0644);
    assert_int_equal(l.lines[2].kind, LEAF_LINK);
}

/* A beginning has the lines that are whole; nothing else is made of it. */
static void every_beginning_is_a_shorter_list_or_none(void **state)
{
    char text[2048];
    (void)state;
    make(text, sizeof(text));
    for (size_t n = 1; n < strlen(text); n++) {
        own_landed l = LANDED_NONE;
        struct pale_err e = {0};
        int r = landed_parse(text, n, &l, &e);
        size_t whole = 0;
        for (size_t i = 0; i < n; i++)
            whole += text[i] == '\n';
        if (whole == 0)
            assert_int_equal(r, -PALE_CORRUPT);
        else
            assert_true(r == 0 && l.count == whole - 1);
    }
}

static void every_flipped_bit_is_noticed(void **state)
{
    char text[2048];
    (void)state;
    make(text, sizeof(text));
    size_t last = strlen(text) - 1;
    for (size_t i = 0; i < last; i++)
        for (int bit = 0; bit < 8; bit++) {
            own_landed l = LANDED_NONE;
            struct pale_err e = {0};
            text[i] = (char)(text[i] ^ 1 << bit);
            assert_int_equal(landed_parse(text, strlen(text) < last ? last + 1 : strlen(text), &l, &e), -PALE_CORRUPT);
            text[i] = (char)(text[i] ^ 1 << bit);
        }
}

static void what_cannot_be_is_not_read(void **state)
{
    static const char *const bad[] = {"10 file 420 - a", "10 file 420 " D " ../a", "10 file 420 " D " /a", "10 file 512 " D " a",
                                      "10 pipe 0 - a",   "10 none 0 " D " a",      "-1 none 0 - a",        "10 none 0 - %00",
                                      "10 none 0 - a b", "10 none 0 - %2"};
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char text[1024], line[512];
        own_landed l = LANDED_NONE;
        struct pale_err e = {0};
        sum_line(line, sizeof(line), bad[i]);
        snprintf(text, sizeof(text), "pale landed 1\n%s", line);
        assert_int_equal(landed_parse(text, strlen(text), &l, &e), -PALE_CORRUPT);
    }
}

TESTS(cmocka_unit_test(a_good_list_is_read), cmocka_unit_test(every_beginning_is_a_shorter_list_or_none),
      cmocka_unit_test(every_flipped_bit_is_noticed), cmocka_unit_test(what_cannot_be_is_not_read))
