/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for box/mounttable and box/ancestors. */
#include "base/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "box/ancestors.h"

static void rows_have_their_numbers_and_paths(void **state)
{
    (void)state;
    static const char text[] = "22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
                               "77 22 254:0 /a\\040b/c /mnt/x\\134y rw shared:1 - ext4 /dev/vda rw\n";
    own_mount_table t = {.text = strdup(text)};
    struct pale_err e;
    assert_int_equal(mount_table_parse(&t, t.text, &e), 0);
    assert_int_equal(t.count, 2);
    const struct mount_row *m = mount_table_find(&t, 77);
    assert_non_null(m);
    assert_string_equal(m->root, "/a b/c");
    assert_string_equal(m->point, "/mnt/x\\y");
    assert_string_equal(m->device, "254:0");
    assert_null(mount_table_find(&t, 78));
}

static void line_that_is_not_understood_is_an_error(void **state)
{
    (void)state;
    static const char *const lines[] = {"22\n", "22 1 254:0 / /\n", "x 1 254:0 / / rw\n", "22 1 1234567890:1234567890123 / / rw\n", " \n"};
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        own_mount_table t = {.text = strdup(lines[i])};
        struct pale_err e;
        assert_int_equal(mount_table_parse(&t, t.text, &e), -PALE_UNSUPPORTED);
    }
}

static void table_of_this_process_is_read(void **state)
{
    (void)state;
    own_mount_table t = {0};
    struct pale_err e;
    assert_int_equal(mount_table_read(&t, &e), 0);
    assert_true(t.count > 0);
}

static void folder_is_among_those_of_what_it_holds(void **state)
{
    (void)state;
    char dir[] = "/tmp/ancestors-test-XXXXXX", inner[64], beside[64];
    struct pale_err e;
    assert_non_null(mkdtemp(dir));
    snprintf(inner, sizeof(inner), "%s/in", dir);
    snprintf(beside, sizeof(beside), "%s/beside", dir);
    assert_true(mkdir(inner, 0700) == 0 && mkdir(beside, 0700) == 0);
    {
        own_ancestors outer = {0}, in = {0}, other = {0}, now = {0};
        assert_int_equal(ancestors_add_path(&outer, dir, &e), 0);
        assert_int_equal(ancestors_add_path(&in, inner, &e), 0);
        assert_int_equal(ancestors_add_path(&other, beside, &e), 0);
        assert_non_null(ancestors_clash(&outer, &in));
        assert_non_null(ancestors_clash(&in, &outer));
        assert_non_null(ancestors_clash(&in, &in));
        assert_null(ancestors_clash(&in, &other));
        assert_int_equal(rmdir(inner), 0);
        assert_int_equal(ancestors_renew(&in, &now, &e), 0);
        assert_int_equal(now.count, 0);
    }
    assert_int_equal(fd_remove_tree(AT_FDCWD, dir, NULL), 0);
}

TESTS(cmocka_unit_test(rows_have_their_numbers_and_paths), cmocka_unit_test(line_that_is_not_understood_is_an_error),
      cmocka_unit_test(table_of_this_process_is_read), cmocka_unit_test(folder_is_among_those_of_what_it_holds))
