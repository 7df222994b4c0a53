/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for image/left. */
#include "base/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fd.h"
#include "image/left.h"

static struct left one, other;
static struct pale_err e;

static void what_is_told_is_heard(void **state)
{
    (void)state;
    char text[LEFT_TEXT_MAX];
    int p[2];
    one = other = (struct left){0};
    assert_false(left_any(&one));
    for (int i = 0; i < 20; i++)
        left_add(&one, LEFT_DEVICE, "dev/\x1b[31m");
    left_add(&one, LEFT_MODE, "a b");
    assert_int_equal(pipe(p), 0);
    assert_true(left_tell(&one, p[1]));
    close(p[1]);
    ssize_t n = fd_read_full(p[0], text, sizeof(text));
    close(p[0]);
    assert_int_equal(left_hear(&other, text, (size_t)n, &e), 0);
    assert_memory_equal(&one, &other, sizeof(one));
    assert_int_equal(other.count[LEFT_DEVICE], 20);
    assert_null(strchr(text, '\x1b'));
    /* Told again it adds up, and names beyond the first few are only counted. */
    assert_int_equal(left_hear(&other, text, (size_t)n, &e), 0);
    assert_int_equal(other.count[LEFT_DEVICE], 40);
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    static const char *const rows[] = {"device", "devices 1\n", "\n", "device\n", "x = y\n", "device 1\nhalf"};
    char longer[400];
    one = (struct left){0};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(left_hear(&one, rows[i], strlen(rows[i]), &e), -PALE_CORRUPT);
    memset(longer, 'x', sizeof(longer));
    memcpy(longer, "device = ", 9);
    longer[sizeof(longer) - 1] = '\n';
    assert_int_equal(left_hear(&one, longer, sizeof(longer), &e), -PALE_CORRUPT);
    assert_int_equal(left_hear(&one, "device 1\0\n", 10, &e), -PALE_CORRUPT);
    assert_int_equal(left_hear(&one, NULL, 0, &e), 0);
    assert_int_equal(left_hear(&one, "fifo = a\x1b]0;b\n", 14, &e), 0);
    assert_string_equal(one.name[LEFT_FIFO][0], "a\\x1b]0;b");
}

TESTS(cmocka_unit_test(what_is_told_is_heard), cmocka_unit_test(nonsense_is_refused))
