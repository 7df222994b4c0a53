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

/* What git has of that name, as a text; NULL: nothing. */
static const char *ask(struct gitbase *g, const char *oid)
{
    static char text[64];
    struct pale_err e = {0};
    uint64_t size = 0;
    own_fd fd = -1;
    memset(text, 0, sizeof(text));
    assert_int_equal(gitbase_ask(g, oid, &fd, &size, &e), 0);
    if (fd < 0)
        return NULL;
    assert_true(fd_read_full(fd, text, sizeof(text) - 1) == (ssize_t)size);
    return text;
}

#define BLOB "8e27be7d6154a1f68ea9160ef0e18691d20560dc" /* of "text\n" */

static void blobs_are_found_and_nothing_else(void **state_of_test)
{
    static const char *const none[] = {"HEAD", "HEAD:./a", "", "../secret", "a\nb", "0123456789012345678901234567890123456789", "8e27be7"};
    struct pale_err e = {0};
    (void)state_of_test;
    if (!git("init", "-q", NULL) || !git("add", ".", NULL) || !git("commit", "-qm", "all"))
        skip(); /* there is no git here */
    struct gitbase g = {.fd = -1, .dir_fd = -1};
    assert_int_equal(gitbase_start(&g, project, state, &e), 0);
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        assert_null(ask(&g, none[i]));
        assert_string_equal(ask(&g, BLOB), "text\n");
    }
    gitbase_end(&g);
    /* The folder went with whoever asked, and nothing came to lie beside it. */
    assert_int_equal(rmdir(state), 0);
    assert_int_equal(mkdir(state, 0700), 0);
}

static void what_git_ignores_is_told(void **state_of_test)
{
    struct pale_err e = {0};
    (void)state_of_test;
    put(project, "text"); /* ignored by .gitignore, written below */
    own_fd dir = open(project, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    own_fd fd = openat(dir, ".gitignore", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0 && fd_write_full(fd, "*.o\nout/\n!kept.o\n", 18));
    if (!git("init", "-q", NULL))
        skip();
    own_gitbase g = {.fd = -1, .dir_fd = -1};
    assert_int_equal(gitbase_start(&g, project, state, &e), 0);
    assert_true(gitbase_is_ignored(&g, "x.o", false));
    assert_false(gitbase_is_ignored(&g, "kept.o", false));
    assert_false(gitbase_is_ignored(&g, "x.c", false));
    assert_true(gitbase_is_ignored(&g, "out", true));
    assert_false(gitbase_is_ignored(&g, "out", false));
    assert_true(gitbase_is_ignored(&g, "out/a/b", false));
    (void)gitbase_is_ignored(&g, "/etc/passwd", false);
    assert_true(gitbase_is_ignored(&g, "y.o", false));
}

static void without_a_repository_there_is_none(void **state_of_test)
{
    struct pale_err e = {0};
    (void)state_of_test;
    own_gitbase g = {.fd = -1, .dir_fd = -1};
    assert_int_equal(gitbase_start(&g, project, state, &e), 0);
    assert_null(ask(&g, BLOB));
    assert_false(gitbase_is_ignored(&g, "a", false));
}

TESTS(cmocka_unit_test_setup_teardown(blobs_are_found_and_nothing_else, make_repository, remove_repository),
      cmocka_unit_test_setup_teardown(what_git_ignores_is_told, make_repository, remove_repository),
      cmocka_unit_test_setup_teardown(without_a_repository_there_is_none, make_repository, remove_repository))
