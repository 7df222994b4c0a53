/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for box/start and box/gitindex: lists and indexes that are whole, and those that are not. */
#include "base/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "box/gitindex.h"
#include "box/start.h"

#define O "0123456789012345678901234567890123456789"
#define D "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void make(char *ret, size_t cap, const char *lines)
{
    char sum[SHA256_HEX];
    snprintf(ret, cap, "pale start 1\n%s", lines);
    sha256_hex(ret, strlen(ret), sum);
    snprintf(ret + strlen(ret), cap - strlen(ret), "end %s\n", sum);
}

static const char good[] = O " 33188 10 - b\n" O " 33261 0 " D " a%20b\n" O " 41471 3 - d/link\n";

static void a_good_list_is_read(void **state)
{
    char text[2048];
    own_start s = {0};
    struct pale_err e = {0};
    (void)state;
    make(text, sizeof(text), good);
    assert_int_equal(start_parse(text, strlen(text), &s, &e), 0);
    assert_int_equal(s.count, 3);
    assert_int_equal(start_find(&s, "a b")->mode, 0100755);
    assert_string_equal(start_find(&s, "b")->oid, O);
    assert_null(start_find(&s, "c"));
}

static void no_beginning_and_no_flipped_bit_is_read(void **state)
{
    char text[2048];
    (void)state;
    make(text, sizeof(text), good);
    size_t len = strlen(text);
    for (size_t n = 0; n < len; n++) {
        own_start s = {0}, t = {0};
        struct pale_err e = {0};
        assert_int_equal(start_parse(text, n, &s, &e), -PALE_CORRUPT);
        text[n] ^= 1;
        assert_int_equal(start_parse(text, len, &t, &e), -PALE_CORRUPT);
        text[n] ^= 1;
    }
}

static void what_cannot_be_is_not_read(void **state)
{
    static const char *const bad[] = {O " 33188 10 - ../b\n",  O " 16877 10 - b\n", "HEAD 33188 10 - b\n",
                                      O " 33188 10 " O " b\n", O " 33188 -1 - b\n", O " 33188 1 - b"};
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char text[1024];
        own_start s = {0};
        struct pale_err e = {0};
        make(text, sizeof(text), bad[i]);
        assert_int_equal(start_parse(text, strlen(text), &s, &e), -PALE_CORRUPT);
    }
}

static int count(void *arg, const struct gitindex_entry *entry, struct pale_err *e)
{
    (void)entry;
    (void)e;
    ++*(int *)arg;
    return 0;
}

/* Two entries of version 2; the second is in conflict. */
static size_t make_index(uint8_t *ret)
{
    memset(ret, 0, 156);
    memcpy(ret, "DIRC\0\0\0\2\0\0\0\2", 12);
    for (int i = 0; i < 2; i++) {
        uint8_t *p = ret + 12 + 72 * i;
        p[26] = 0x81;
        p[27] = 0xa4;
        p[60] = i ? 0x20 : 0;
        p[61] = 3;
        memcpy(p + 62, "d/a", 3);
    }
    return 156;
}

static void an_index_is_read_to_its_count(void **state)
{
    uint8_t index[160];
    int n = 0;
    struct pale_err e = {0};
    (void)state;
    size_t len = make_index(index);
    assert_int_equal(gitindex_read(index, len, count, &n, &e), 0);
    assert_int_equal(n, 1);
    for (size_t cut = 0; cut < len; cut++) {
        uint8_t *copy = malloc(cut ? cut : 1); /* so that a step beyond its end is found */
        memcpy(copy, index, cut);
        assert_true(gitindex_read(copy, cut, count, &n, &e) < 0);
        free(copy);
    }
}

static void strange_indexes_do_no_harm(void **state)
{
    uint8_t index[160];
    int n = 0;
    struct pale_err e = {0};
    (void)state;
    uint32_t chance = 7;
    for (int round = 0; round < 20000; round++) {
        size_t len = make_index(index);
        index[7] = (uint8_t)(2 + round % 3);
        for (int i = 0; i < 6; i++) {
            chance = chance * 1664525u + 1013904223u;
            index[8 + (chance >> 8) % (len - 8)] = (uint8_t)(chance >> 24);
        }
        (void)!gitindex_read(index, len, count, &n, &e);
    }
}

TESTS(cmocka_unit_test(a_good_list_is_read), cmocka_unit_test(no_beginning_and_no_flipped_bit_is_read),
      cmocka_unit_test(what_cannot_be_is_not_read), cmocka_unit_test(an_index_is_read_to_its_count),
      cmocka_unit_test(strange_indexes_do_no_harm))
