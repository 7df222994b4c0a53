/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for base/fd: the removal of trees as a box may leave them, and files that follow others to the disk. */
#include "base/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"

static char top[] = "/tmp/pale-fd-XXXXXX";
static int top_fd = -1;

static int fresh(void **state)
{
    (void)state;
    memcpy(top + sizeof(top) - 7, "XXXXXX", 6);
    return !mkdtemp(top) || (top_fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0;
}

static int clean(void **state)
{
    (void)state;
    close(top_fd);
    return rmdir(top);
}

static void put(int dirfd, const char *name)
{
    own_fd fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
}

/* A chain of folders, each with a file and a closed folder beside the next one. */
static void dig(int dirfd, const char *name, int depth)
{
    assert_int_equal(mkdirat(dirfd, name, 0755), 0);
    own_fd at = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < depth; i++) {
        put(at, "file");
        assert_int_equal(mkdirat(at, "closed", 0700), 0);
        assert_int_equal(mkdirat(at, "closed/in", 0000), 0);
        assert_int_equal(fchmodat(at, "closed", 0000, 0), 0);
        assert_int_equal(mkdirat(at, "d", 0755), 0);
        int next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(next >= 0 && fchmod(at, i % 3 == 1 ? 0000 : 0755) == 0);
        close(at);
        at = next;
    }
}

static void tree_of_any_depth_is_removed(void **state)
{
    (void)state;
    struct pale_err e = {0};
    dig(top_fd, "tree", 3000);
    assert_int_equal(mkdirat(top_fd, "tree/deep-0", 0755), 0);
    assert_int_equal(mkdirat(top_fd, "tree/deep-0/full", 0755), 0);
    put(top_fd, "tree/deep-1");
    assert_int_equal(fchmodat(top_fd, "tree", 0000, 0), 0);
    int r = fd_remove_tree(top_fd, "tree", &e);
    if (r < 0)
        fail_msg("%s", e.text);
    assert_int_equal(faccessat(top_fd, "tree", F_OK, AT_SYMLINK_NOFOLLOW), -1);
}

static void few_descriptors_are_enough(void **state)
{
    (void)state;
    struct rlimit old, few;
    struct pale_err e = {0};
    dig(top_fd, "tree", 500);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    few = old;
    few.rlim_cur = 100;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    int r = fd_remove_tree(top_fd, "tree", &e);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    if (r < 0)
        fail_msg("%s", e.text);
}

static void links_are_removed_and_not_followed(void **state)
{
    (void)state;
    char outside[64];
    snprintf(outside, sizeof(outside), "%s/outside", top);
    assert_int_equal(mkdirat(top_fd, "outside", 0755), 0);
    put(top_fd, "outside/kept");
    assert_int_equal(mkdirat(top_fd, "tree", 0755), 0);
    assert_int_equal(symlinkat(outside, top_fd, "tree/absolute"), 0);
    assert_int_equal(symlinkat("../outside", top_fd, "tree/up"), 0);
    assert_int_equal(fd_remove_tree(top_fd, "tree", NULL), 0);
    assert_int_equal(unlinkat(top_fd, "outside/kept", 0), 0);
    assert_int_equal(symlinkat(outside, top_fd, "link"), 0);
    assert_true(fd_remove_tree(top_fd, "link", NULL) < 0);
    assert_int_equal(unlinkat(top_fd, "link", 0), 0);
    assert_int_equal(fd_remove_tree(top_fd, "outside", NULL), 0);
    assert_int_equal(fd_remove_tree(top_fd, "outside", NULL), 0);
}

static void two_may_remove_one_tree(void **state)
{
    (void)state;
    for (int round = 0; round < 6; round++) {
        struct pale_err e = {0};
        int status = 0;
        dig(top_fd, "tree", 40);
        for (int i = 0; i < 60; i++) {
            char name[32];
            snprintf(name, sizeof(name), "tree/file-%d", i);
            put(top_fd, name);
        }
        pid_t other = fork();
        if (other == 0)
            _exit(fd_remove_tree(top_fd, "tree", NULL) < 0);
        int r = fd_remove_tree(top_fd, "tree", &e);
        assert_int_equal(waitpid(other, &status, 0), other);
        if (r < 0)
            fail_msg("%s", e.text);
        assert_int_equal(status, 0);
        assert_int_equal(faccessat(top_fd, "tree", F_OK, AT_SYMLINK_NOFOLLOW), -1);
    }
}

static void read_word(char *ret, size_t cap)
{
    own_fd fd = openat(top_fd, "name", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : fd_read_full(fd, ret, cap - 1);
    assert_true(n >= 0);
    ret[n] = 0;
}

static void try_after(bool calm)
{
    struct pale_err e;
    char word[16];
    int pair[2];
    assert_int_equal(pipe(pair), 0); /* nothing that has a disk */
    assert_int_equal(fd_replace_file_after(top_fd, "name", "old", 3, &(struct fd_after){&top_fd, 1, calm}, &e), 0);
    const int fds[] = {top_fd, pair[0]};
    assert_int_equal(fd_replace_file_after(top_fd, "name", "new", 3, &(struct fd_after){fds, 2, calm}, &e), -PALE_OS);
    read_word(word, sizeof(word));
    assert_string_equal(word, "old");
    assert_int_equal(fd_replace_file_after(top_fd, "name", "new", 3, &(struct fd_after){fds, 1, calm}, &e), 0);
    read_word(word, sizeof(word));
    assert_string_equal(word, "new");
    close(pair[0]);
    close(pair[1]);
    assert_int_equal(unlinkat(top_fd, "name", 0), 0); /* and nothing beside it: clean finds the folder empty */
}

static void file_stays_where_what_must_come_first_cannot_be_synced(void **state)
{
    (void)state;
    try_after(false);
    try_after(true);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, fresh, clean)
TESTS(CASE(tree_of_any_depth_is_removed), CASE(few_descriptors_are_enough), CASE(links_are_removed_and_not_followed),
      CASE(two_may_remove_one_tree), CASE(file_stays_where_what_must_come_first_cannot_be_synced))
