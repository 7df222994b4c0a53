/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for box/gitbase: what is committed is found, and a path that leads elsewhere is not asked for. */
#include "base/test.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "box/gitbase.h"

static char top[64], project[96], state[96];

static bool git(const char *a, const char *b, const char *c)
{
    char *const argv[] = {(char *)"git",
                          (char *)"-C",
                          top,
                          (char *)"-c",
                          (char *)"user.name=n",
                          (char *)"-c",
                          (char *)"user.email=e@example.org",
                          (char *)a,
                          (char *)(b ? b : ""),
                          (char *)c,
                          NULL};
    char *const envp[] = {(char *)"PATH=/usr/local/bin:/usr/bin:/bin", (char *)"HOME=/", (char *)"GIT_CONFIG_NOSYSTEM=1", NULL};
    pid_t pid;
    int status = -1;
    return posix_spawnp(&pid, "git", NULL, NULL, argv, envp) == 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static void put(const char *folder, const char *name)
{
    own_fd dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    own_fd fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0 && fd_write_full(fd, "text\n", 5));
}

/* A project in a folder of a repository, and a folder for what is found. */
static int make_repository(void **state_of_test)
{
    (void)state_of_test;
    snprintf(top, sizeof(top), "/tmp/gitbase-XXXXXX");
    if (!mkdtemp(top))
        return -1;
    snprintf(project, sizeof(project), "%s/project", top);
    snprintf(state, sizeof(state), "%s/state", top);
    if (mkdir(project, 0700) < 0 || mkdir(state, 0700) < 0)
        return -1;
    put(project, "a");
    put(top, "secret");
    return 0;
}

static int remove_repository(void **state_of_test)
{
    (void)state_of_test;
    return fd_remove_tree(AT_FDCWD, top, NULL);
}

static size_t ask(const char *const *paths, size_t count, bool *ret_has_a)
{
    own_gitbase g = {.fd = -1, .dir_fd = -1};
    struct pale_err e = {0};
    size_t found = 99;
    struct stat st;
    assert_int_equal(gitbase_start(&g, project, state, &e), 0);
    assert_int_equal(gitbase_ask(&g, (char *const *)paths, count, &found, &e), 0);
    *ret_has_a = fstatat(g.dir_fd, "a", &st, AT_SYMLINK_NOFOLLOW) == 0;
    return found;
}

static void committed_files_are_found_and_nothing_else(void **state_of_test)
{
    static const char *const paths[] = {"a", "../secret", "x/../../secret", "/etc/passwd", "./a", "a/", "", "a\nb", "not-there"};
    bool has_a = false;
    (void)state_of_test;
    if (!git("init", "-q", NULL) || !git("add", ".", NULL) || !git("commit", "-qm", "all"))
        skip(); /* there is no git here */
    assert_int_equal(ask(paths, sizeof(paths) / sizeof(paths[0]), &has_a), 1);
    assert_true(has_a);
    /* The folder went with whoever asked, and nothing came to lie beside it. */
    assert_int_equal(rmdir(state), 0);
    assert_int_equal(mkdir(state, 0700), 0);
}

static void without_a_repository_there_is_none(void **state_of_test)
{
    static const char *const paths[] = {"a"};
    bool has_a = false;
    (void)state_of_test;
    assert_int_equal(ask(paths, 1, &has_a), 0);
    assert_false(has_a);
}

TESTS(cmocka_unit_test_setup_teardown(committed_files_are_found_and_nothing_else, make_repository, remove_repository),
      cmocka_unit_test_setup_teardown(without_a_repository_there_is_none, make_repository, remove_repository))
