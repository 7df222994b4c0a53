/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for box/allot and confine/quota, where there are no quotas; tests/system/test_disk.py has those where there are. */
#include "policy/policy_test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "box/allot.h"
#include "confine/quota.h"

/* A file system that has never heard of projects. */
static int without_quotas(void)
{
    return open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void files_grow_with_bytes_from_a_least_number_on(void **state)
{
    (void)state;
    assert_int_equal(allot_files(1 << 20), 4096);
    assert_int_equal(allot_files(64 << 20), 4096);
    assert_int_equal(allot_files(UINT64_C(2) << 30), 131072);
}

static void limit_on_disk_is_wanted_only_where_layers_are(void **state)
{
    (void)state;
    own_policy none = POLICY("tier", "native"), disk = POLICY("limits.disk", "1G");
    own_policy memory = POLICY("limits.disk", "1G", "scratch", "memory");
    assert_false(allot_is_wanted(&none));
    assert_true(allot_is_wanted(&disk));
    assert_false(allot_is_wanted(&memory));
}

static void limit_that_was_asked_for_is_refused_with_reason_and_remedy(void **state)
{
    (void)state;
    own_policy p = POLICY("limits.disk", "1G");
    own_fd fd = without_quotas();
    struct pale_err e = {0};
    uint32_t project = 7;
    assert_int_equal(allot_give(fd, &p, &project, &e), -PALE_UNSUPPORTED);
    assert_int_equal(project, 0);
    assert_has(e.text, "limits.disk cannot be held: no project quotas");
    assert_has(e.text, "scratch: memory");
    assert_has(e.text, "tune2fs");
    assert_has(e.text, "XFS: `mount -o prjquota`)");
}

static void limit_that_nobody_asked_for_falls_away(void **state)
{
    (void)state;
    own_policy p = POLICY("limits.disk", "1G");
    own_fd fd = without_quotas();
    struct pale_err e = {0};
    uint32_t project = 7;
    p.limits[LIMIT_DISK].asked = false;
    assert_int_equal(allot_give(fd, &p, &project, &e), 0);
    assert_int_equal(project, 0);
}

static void folder_that_counts_to_no_project_is_refused_where_one_is_expected(void **state)
{
    (void)state;
    own_fd fd = without_quotas();
    struct pale_err e = {0};
    uint32_t project = 7;
    assert_int_equal(quota_marked(fd, &project, &e), 0);
    assert_int_equal(project, 0);
    assert_int_equal(allot_check(fd, 0, &e), 0);
    assert_int_equal(allot_check(fd, 0x50000001, &e), -PALE_CORRUPT);
}

static void exempt_folder_is_made_once_where_there_are_no_projects(void **state)
{
    (void)state;
    char top[] = "/tmp/pale-allot-XXXXXX";
    struct pale_err e = {0};
    struct stat st;
    assert_non_null(mkdtemp(top));
    own_fd fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC), made = -1, again = -1;
    assert_int_equal(allot_make_exempt(fd, "a", &made, &e), 0);
    assert_int_equal(fstat(made, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_true(allot_make_exempt(fd, "a", &again, &e) < 0);
    assert_int_equal(again, -1);
    assert_has(e.text, "make folder a");
    assert_int_equal(unlinkat(fd, "a", AT_REMOVEDIR), 0);
    assert_int_equal(rmdir(top), 0);
}

static void sweep_has_nothing_to_do_without_quotas(void **state)
{
    (void)state;
    struct pale_err e = {0};
    assert_int_equal(allot_sweep("/proc", &e), 0);
    assert_int_equal(allot_sweep("/nowhere-at-all", &e), 0);
}

TESTS(cmocka_unit_test(files_grow_with_bytes_from_a_least_number_on), cmocka_unit_test(limit_on_disk_is_wanted_only_where_layers_are),
      cmocka_unit_test(limit_that_was_asked_for_is_refused_with_reason_and_remedy),
      cmocka_unit_test(limit_that_nobody_asked_for_falls_away),
      cmocka_unit_test(folder_that_counts_to_no_project_is_refused_where_one_is_expected),
      cmocka_unit_test(exempt_folder_is_made_once_where_there_are_no_projects), cmocka_unit_test(sweep_has_nothing_to_do_without_quotas))
