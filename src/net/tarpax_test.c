/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for net/tarpax. */
#include "base/test.h"

#include <stdio.h>

#include "net/tarpax.h"

static struct tarpax t;

static int take(const char *text, size_t n)
{
    memset(&t, 0, sizeof(t));
    int r = tarpax_take(&t, (const uint8_t *)text, n, NULL);
    return r < 0 ? r : tarpax_end(&t, NULL);
}

static void records_are_read_back(void **state)
{
    (void)state;
    char text[8192], path[PATH_BYTES_MAX];
    /* Lengths whose own digits make them a digit longer are among these. */
    for (size_t n = 1; n < PATH_BYTES_MAX; n++) {
        memset(path, 'p', n);
        path[n] = 0;
        size_t len = tarpax_put(text, "path", path);
        len += tarpax_put(text + len, "mtime", "-7");
        assert_int_equal(take(text, len), 0);
        assert_string_equal(t.path, path);
        assert_true(t.has[TARPAX_PATH] && t.has[TARPAX_MTIME] && t.mtime == -7 && !t.has[TARPAX_SIZE] && !t.has[TARPAX_LINK]);
    }
}

static void every_split_and_prefix_of_records(void **state)
{
    (void)state;
    static const char text[] = "10 path=a\n12 comment=\n14 linkpath=b\n10 size=5\n";
    size_t n = strlen(text);
    for (size_t i = 0; i <= n; i++) {
        bool at_end = i == 0 || text[i - 1] == '\n';
        assert_int_equal(take(text, i) == 0, at_end);
        memset(&t, 0, sizeof(t));
        assert_int_equal(tarpax_take(&t, (const uint8_t *)text, i, NULL), 0);
        assert_int_equal(tarpax_take(&t, (const uint8_t *)text + i, n - i, NULL), 0);
        assert_int_equal(tarpax_end(&t, NULL), 0);
        assert_string_equal(t.path, "a");
        assert_string_equal(t.link, "b");
        assert_int_equal(t.size, 5);
    }
}

static struct tarpax_attributes attributes;

static int take_attributes(const char *text)
{
    t = (struct tarpax){.attributes = &attributes};
    attributes.len = 0;
    int r = tarpax_take(&t, (const uint8_t *)text, strlen(text), NULL);
    return r < 0 ? r : tarpax_end(&t, NULL);
}

static void a_users_own_attributes_are_taken(void **state)
{
    (void)state;
    char text[400];
    size_t n = tarpax_put_bytes(text, "SCHILY.xattr.user.a", "x\0y", 3);
    n += tarpax_put(text + n, "SCHILY.xattr.user.b", "");
    t = (struct tarpax){.attributes = &attributes};
    attributes.len = 0;
    assert_int_equal(tarpax_take(&t, (const uint8_t *)text, n, NULL), 0);
    assert_int_equal(tarpax_end(&t, NULL), 0);
    assert_true(t.has_attributes && !t.has_other && !t.trouble);
    static const char is[] = "user.a\0\3\0\0\0\0\0\0\0x\0yuser.b\0\0\0\0\0\0\0\0";
    assert_int_equal(attributes.len, sizeof(is));
    assert_memory_equal(attributes.bytes, is, sizeof(is));
}

static void attributes_that_are_not_taken_are_told_with_the_entry(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "user.overlay.x", "user.overlay.overlay.opaque", "trusted.overlay.redirect", "security.capability", "user.", "user.b user.a",
        "user.a user.a",
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char made[200] = "", key[80];
        size_t n = 0;
        for (const char *at = rows[i]; *at; at += strcspn(at, " "), at += strspn(at, " ")) {
            snprintf(key, sizeof(key), TARPAX_ATTRIBUTE "%.*s", (int)strcspn(at, " "), at);
            n += tarpax_put(made + n, key, "x");
        }
        assert_int_equal(take_attributes(made), 0);
        assert_non_null(t.trouble);
    }
    assert_int_equal(take("27 SCHILY.xattr.user.a=any\n", 27), 0);
    assert_true(t.has_attributes && !t.trouble);
}

static void records_that_are_none_are_refused(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "path=a\n",
        " 9 path=a\n",
        "8 path=a\n",
        "11 path=a\n",
        "010 path=a\n",
        "10\tpath=a\n",
        "12345678 a=b\n",
        "4 =\n",
        "5 =b\n",
        "3 \n",
        "6 path\n",
        "8 path=\n",
        "-1 a=b\n",
        "11 size=-1\n",
        "11 size=1x\n",
        "9 size=\n",
        "10 size= \n",
        "13 mtime=1.x\n",
        "10 mtime=\n",
        "12 mtime=.5\n",
        "10 path=a\n10 path=a\n",
        "29 size=9223372036854775808\n",
        "13 mtime=--1\n",
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (take(rows[i], strlen(rows[i])) >= 0)
            fail_msg("row %zu was taken", i);
    assert_int_equal(take("12 path=a\0b\n", 12), -PALE_BAD_INPUT);
    assert_int_equal(take("16 comment=a\0b\n", 15), -PALE_BAD_INPUT);
    assert_int_equal(take("15 comment=a\0b\n", 15), 0); /* nobody looks at it */
}

static int take_long(const char *text, size_t n)
{
    memset(&t, 0, sizeof(t));
    int r = tarpax_take_long(&t, TARPAX_PATH, (const uint8_t *)text, n, NULL);
    return r < 0 ? r : tarpax_end_long(&t, TARPAX_PATH, NULL);
}

static void long_names_end_with_a_zero_or_without(void **state)
{
    (void)state;
    static char name[PATH_BYTES_MAX + 1];
    assert_int_equal(take_long("a/b", 3), 0);
    assert_string_equal(t.path, "a/b");
    assert_int_equal(take_long("a/b\0\0", 5), 0);
    assert_string_equal(t.path, "a/b");
    assert_int_equal(take_long("a\0b", 3), -PALE_BAD_INPUT);
    assert_int_equal(take_long("\0", 1), -PALE_BAD_INPUT);
    assert_int_equal(take_long("", 0), -PALE_BAD_INPUT);
    memset(name, 'n', sizeof(name));
    assert_int_equal(take_long(name, PATH_BYTES_MAX - 1), 0);
    assert_int_equal(take_long(name, PATH_BYTES_MAX), -PALE_LIMIT);
}

static void a_name_is_told_once(void **state)
{
    (void)state;
    static const uint8_t record[] = "10 path=a\n";
    assert_int_equal(take_long("a", 1), 0);
    assert_int_equal(tarpax_take_long(&t, TARPAX_PATH, (const uint8_t *)"b", 1, NULL), -PALE_BAD_INPUT);
    assert_int_equal(take_long("a", 1), 0);
    assert_int_equal(tarpax_take(&t, record, 10, NULL), -PALE_BAD_INPUT);
    assert_int_equal(take((const char *)record, 10), 0);
    assert_int_equal(tarpax_end_long(&t, TARPAX_PATH, NULL), -PALE_BAD_INPUT);
    assert_int_equal(take((const char *)record, 10), 0);
    assert_int_equal(tarpax_take_long(&t, TARPAX_LINK, (const uint8_t *)"b", 1, NULL), 0);
    assert_int_equal(tarpax_end_long(&t, TARPAX_LINK, NULL), 0);
    assert_string_equal(t.link, "b");
}

TESTS(cmocka_unit_test(records_are_read_back), cmocka_unit_test(every_split_and_prefix_of_records),
      cmocka_unit_test(a_users_own_attributes_are_taken), cmocka_unit_test(attributes_that_are_not_taken_are_told_with_the_entry),
      cmocka_unit_test(records_that_are_none_are_refused), cmocka_unit_test(long_names_end_with_a_zero_or_without),
      cmocka_unit_test(a_name_is_told_once))
