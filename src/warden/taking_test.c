/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/taking.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/own.h"
#include "base/test.h"

static char root[64];
static int project, quarantine;

static int set_up(void **state)
{
    (void)state;
    snprintf(root, sizeof(root), "/tmp/taking-XXXXXX");
    if (!mkdtemp(root))
        return -1;
    own_fd at = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (mkdirat(at, "p", 0755) < 0 || mkdirat(at, "q", 0700) < 0)
        return -1;
    project = openat(at, "p", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    quarantine = openat(at, "q", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    own_fd tmp = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
    close(project);
    close(quarantine);
    return fd_remove_tree(tmp, root + 5, NULL);
}

static bool is_there(int dirfd, const char *name)
{
    struct stat st;
    return fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool take(struct taking *t, const char *name)
{
    struct pale_err e = {0};
    bool kept;
    assert_int_equal(taking_take(t, project, name, name, &kept, &e), 0);
    assert_false(is_there(project, name));
    return kept;
}

static void folders_files_links_and_fifos_are_taken_whole(void **state)
{
    (void)state;
    struct taking t;
    assert_int_equal(taking_open(&t, quarantine, NULL), 0);
    assert_int_equal(mkdirat(project, "d", 0755), 0);
    assert_int_equal(mknodat(project, "d/f", S_IFREG | 0644, 0), 0);
    assert_int_equal(symlinkat("/etc/passwd", project, "l"), 0);
    assert_int_equal(mkfifoat(project, "p", 0644), 0);
    assert_true(take(&t, "d"));
    assert_true(take(&t, "l"));
    assert_true(take(&t, "p"));
    assert_true(is_there(quarantine, "1/f") && is_there(quarantine, "2") && is_there(quarantine, "3"));
    assert_true(is_there(quarantine, "1.path"));
    assert_int_equal(t.kept, 3);
}

static void what_is_gone_by_itself_is_no_error(void **state)
{
    (void)state;
    struct taking t;
    assert_int_equal(taking_open(&t, quarantine, NULL), 0);
    assert_false(take(&t, "never"));
    assert_false(is_there(quarantine, "1.path"));
}

static void numbers_go_on_after_those_that_are_there(void **state)
{
    (void)state;
    struct taking t;
    assert_int_equal(mkdirat(quarantine, "41", 0755), 0);
    assert_int_equal(taking_open(&t, quarantine, NULL), 0);
    assert_int_equal(t.kept, 41);
    assert_int_equal(mknodat(project, "f", S_IFREG | 0644, 0), 0);
    assert_true(take(&t, "f"));
    assert_true(is_there(quarantine, "42"));
}

static void a_folder_that_is_closed_is_taken_all_the_same(void **state)
{
    (void)state;
    struct taking t;
    struct stat st;
    if (geteuid() == 0)
        skip(); /* nothing is closed to root */
    assert_int_equal(taking_open(&t, quarantine, NULL), 0);
    assert_int_equal(mkdirat(project, "d", 0), 0);
    assert_int_equal(fchmod(project, 0555), 0);
    assert_true(take(&t, "d"));
    assert_int_equal(fstat(project, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0555);
}

static void a_full_quarantine_keeps_no_more(void **state)
{
    (void)state;
    struct taking t;
    char name[16];
    snprintf(name, sizeof(name), "%u", GUARD_KEPT_MAX);
    assert_int_equal(mkdirat(quarantine, name, 0755), 0);
    assert_int_equal(taking_open(&t, quarantine, NULL), 0);
    assert_false(taking_has_room(&t));
    assert_int_equal(mkdirat(project, "d", 0755), 0);
    assert_int_equal(mknodat(project, "d/f", S_IFREG | 0644, 0), 0);
    assert_int_equal(symlinkat("d", project, "l"), 0);
    assert_false(take(&t, "d"));
    assert_false(take(&t, "l"));
    assert_false(is_there(quarantine, "discard"));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
TESTS(TEST(folders_files_links_and_fifos_are_taken_whole), TEST(what_is_gone_by_itself_is_no_error),
      TEST(numbers_go_on_after_those_that_are_there), TEST(a_folder_that_is_closed_is_taken_all_the_same),
      TEST(a_full_quarantine_keeps_no_more))
