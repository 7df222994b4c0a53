/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for init/tree, on a /proc made of files. */
#include "base/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "init/tree.h"

static char dir[64];
static int proc;
static struct tree t;

static int fresh(void **state)
{
    (void)state;
    snprintf(dir, sizeof(dir), "/tmp/tree-test-XXXXXX");
    return mkdtemp(dir) && (proc = open(dir, O_RDONLY | O_DIRECTORY)) >= 0 ? 0 : -1;
}

static int clean(void **state)
{
    (void)state;
    close(proc);
    return fd_remove_tree(AT_FDCWD, dir, NULL);
}

static void add(int pid, int parent, const char *name, int ticks)
{
    char path[32], text[256];
    snprintf(path, sizeof(path), "%d", pid);
    assert_int_equal(mkdirat(proc, path, 0700), 0);
    snprintf(path, sizeof(path), "%d/stat", pid);
    int n = snprintf(text, sizeof(text), "%d (%s) S %d 1 1 0 -1 0 0 0 0 0 %d 1 2 3 20 0 1 0 100 0 0\n", pid, name, parent, ticks);
    int fd = openat(proc, path, O_WRONLY | O_CREAT, 0600);
    assert_true(fd_write_full(fd, text, (size_t)n));
    close(fd);
}

static bool is_kin(int pid)
{
    for (int i = 0; i < t.count; i++)
        if (t.process[i].pid == pid)
            return t.process[i].kin == KIN_YES;
    return false;
}

static void descendants_are_found_at_any_depth(void **state)
{
    (void)state;
    add(1, 0, "init", 0);
    add(5, 1, "runner", 0);
    add(6, 5, "sh", 0);
    add(70, 6, "child", 0);
    add(800, 70, "grandchild", 0);
    add(9, 1, "other runner", 0);
    add(10, 9, "other", 0);
    assert_true(tree_read(&t, proc));
    assert_int_equal(tree_mark(&t, 5), 3);
    assert_true(is_kin(6) && is_kin(70) && is_kin(800));
    assert_false(is_kin(5) || is_kin(1) || is_kin(9) || is_kin(10));
    assert_int_equal(tree_mark(&t, 9), 1);
}

static void name_of_a_process_cannot_move_its_parent(void **state)
{
    (void)state;
    add(1, 0, "init", 0);
    add(5, 1, "runner", 0);
    add(6, 5, "evil) S 1 1 1 (", 0);
    assert_true(tree_read(&t, proc));
    assert_int_equal(tree_mark(&t, 5), 1);
}

static void loops_in_what_is_read_end(void **state)
{
    (void)state;
    /* Processes come and go while /proc is read; a reused number may look like a ring. */
    add(5, 1, "runner", 0);
    add(6, 7, "a", 0);
    add(7, 6, "b", 0);
    assert_true(tree_read(&t, proc));
    assert_int_equal(tree_mark(&t, 5), 0);
}

static void cpu_counts_the_living_and_the_reaped(void **state)
{
    (void)state;
    add(5, 1, "runner", 100);
    add(6, 5, "sh", 50);
    assert_true(tree_read(&t, proc));
    tree_mark(&t, 5);
    /* 100+1+2+3 and 50+1+2+3 ticks of a hundredth second each */
    assert_int_equal(tree_cpu_ms(&t, 5), (106 + 56) * 10);
}

static int depth_of(int pid)
{
    for (int i = 0; i < t.count; i++)
        if (t.process[i].pid == pid)
            return t.process[i].depth;
    return -1;
}

static void depth_is_how_many_are_above(void **state)
{
    (void)state;
    add(1, 0, "init", 0);
    add(5, 1, "runner", 0);
    add(800, 5, "sh", 0);
    add(70, 800, "its child has a lower number", 0);
    add(9, 1, "other", 0);
    add(11, 4711, "its parent is gone", 0);
    assert_true(tree_read(&t, proc));
    assert_int_equal(tree_depths(&t), 3);
    assert_true(depth_of(1) == 0 && depth_of(5) == 1 && depth_of(800) == 2 && depth_of(70) == 3 && depth_of(9) == 1 && depth_of(11) == 0);
    add(20, 21, "a", 0);
    add(21, 20, "b", 0);
    assert_true(tree_read(&t, proc));
    assert_true(tree_depths(&t) <= t.count);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, fresh, clean)
TESTS(CASE(descendants_are_found_at_any_depth), CASE(name_of_a_process_cannot_move_its_parent), CASE(loops_in_what_is_read_end),
      CASE(cpu_counts_the_living_and_the_reaped), CASE(depth_is_how_many_are_above))
