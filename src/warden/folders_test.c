/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/folders.h"

#include <stdio.h>

#include "base/limits.h"
#include "base/test.h"

static char path[PATH_BYTES_MAX];

static unsigned put(struct folders *f, int wd, unsigned parent, const char *name)
{
    bool is_new;
    unsigned n = folders_put(f, wd, parent, name, &is_new);
    assert_int_not_equal(n, 0);
    return n;
}

static void paths_lead_from_the_project_down(void **state)
{
    (void)state;
    struct folders f = {0};
    assert_int_equal(put(&f, 10, 0, ""), FOLDER_ROOT);
    unsigned a = put(&f, 11, FOLDER_ROOT, "a"), b = put(&f, 12, a, "b");
    assert_true(folders_path(&f, FOLDER_ROOT, path, sizeof(path)));
    assert_string_equal(path, "");
    assert_true(folders_path(&f, b, path, sizeof(path)));
    assert_string_equal(path, "a/b");
    assert_int_equal(folders_find(&f, 12), b);
    assert_int_equal(folders_find(&f, 13), 0);
    folders_done(&f);
}

static void a_folder_that_was_moved_has_its_new_path(void **state)
{
    (void)state;
    struct folders f = {0};
    bool is_new;
    put(&f, 1, 0, "");
    unsigned a = put(&f, 2, FOLDER_ROOT, "a"), b = put(&f, 3, a, "b"), c = put(&f, 4, FOLDER_ROOT, "c");
    assert_int_equal(folders_put(&f, 3, c, "d", &is_new), b);
    assert_false(is_new);
    assert_true(folders_path(&f, b, path, sizeof(path)));
    assert_string_equal(path, "c/d");
    folders_done(&f);
}

static void a_folder_whose_parent_is_forgotten_has_no_path(void **state)
{
    (void)state;
    struct folders f = {0};
    put(&f, 1, 0, "");
    unsigned a = put(&f, 2, FOLDER_ROOT, "a"), b = put(&f, 3, a, "b");
    folders_drop(&f, a);
    assert_false(folders_path(&f, b, path, sizeof(path)));
    assert_int_equal(put(&f, 9, FOLDER_ROOT, "other"), a); /* the same number, another folder */
    assert_false(folders_path(&f, b, path, sizeof(path)));
    folders_done(&f);
}

static void records_that_lead_in_a_circle_have_no_path(void **state)
{
    (void)state;
    struct folders f = {0};
    put(&f, 1, 0, "");
    unsigned a = put(&f, 2, FOLDER_ROOT, "a"), b = put(&f, 3, a, "b");
    put(&f, 2, b, "a");
    assert_false(folders_path(&f, a, path, sizeof(path)));
    folders_done(&f);
}

static void a_repository_counts_as_git_whatever_it_is_called(void **state)
{
    (void)state;
    struct folders f = {0};
    put(&f, 1, 0, "");
    unsigned a = put(&f, 2, FOLDER_ROOT, "a"), r = put(&f, 3, a, "store"), i = put(&f, 4, r, "info");
    assert_true(folders_look_path(&f, i, 3, path, sizeof(path)));
    assert_string_equal(path, "a/store/info");
    assert_true(folders_look_path(&f, i, 1, path, sizeof(path)));
    assert_string_equal(path, "info");
    f.item[r].is_repository = true;
    assert_true(folders_look_path(&f, i, 3, path, sizeof(path)));
    assert_string_equal(path, ".git/info");
    assert_true(folders_path(&f, i, path, sizeof(path)));
    assert_string_equal(path, "a/store/info");
    f.item[FOLDER_ROOT].is_repository = true;
    assert_true(folders_look_path(&f, FOLDER_ROOT, 3, path, sizeof(path)));
    assert_string_equal(path, ".git");
    folders_done(&f);
}

static void thousands_are_found_again(void **state)
{
    (void)state;
    struct folders f = {0};
    char name[16];
    put(&f, 1, 0, "");
    for (int i = 2; i < 5000; i++) {
        snprintf(name, sizeof(name), "d%d", i);
        put(&f, i * 7, FOLDER_ROOT, name);
    }
    assert_int_equal(f.count, 4999);
    for (int i = 2; i < 5000; i += 2)
        folders_drop(&f, folders_find(&f, i * 7));
    for (int i = 2; i < 5000; i++)
        assert_int_equal(folders_find(&f, i * 7) != 0, i % 2);
    folders_done(&f);
}

TESTS(cmocka_unit_test(paths_lead_from_the_project_down), cmocka_unit_test(a_folder_that_was_moved_has_its_new_path),
      cmocka_unit_test(a_folder_whose_parent_is_forgotten_has_no_path), cmocka_unit_test(records_that_lead_in_a_circle_have_no_path),
      cmocka_unit_test(a_repository_counts_as_git_whatever_it_is_called), cmocka_unit_test(thousands_are_found_again))
