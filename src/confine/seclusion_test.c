/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for confine/seclusion: what a process that reads trees of a box can still do, seen from inside. */
#include "base/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "confine/seclusion.h"

/* A folder to work in and one beside it, both open. */
static char top[64];
static int inside_fd, outside_fd;

static int make_folders(void **state)
{
    (void)state;
    snprintf(top, sizeof(top), "/tmp/seclusion-XXXXXX");
    if (!mkdtemp(top))
        return -1;
    own_fd fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (mkdirat(fd, "inside", 0700) < 0 || mkdirat(fd, "outside", 0700) < 0 || mkdirat(fd, "inside/sub", 0700) < 0)
        return -1;
    inside_fd = openat(fd, "inside", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    outside_fd = openat(fd, "outside", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    own_fd a = openat(inside_fd, "a", O_WRONLY | O_CREAT | O_CLOEXEC, 0600),
           b = openat(outside_fd, "b", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    return a < 0 || b < 0 ? -1 : 0;
}

static int remove_folders(void **state)
{
    (void)state;
    own_close(&inside_fd);
    own_close(&outside_fd);
    return fd_remove_tree(AT_FDCWD, top, NULL);
}

/* Each step is one deed; what it finds is errno, or 0. */
enum deed {
    READ_INSIDE,
    WRITE_INSIDE,
    MOVE_INSIDE,
    REMOVE,
    LINK,
    CHANGE_LINKED,
    READ_OUTSIDE,
    WRITE_OUTSIDE,
    READ_HOST,
    UNNAMED,
    PROGRAM,
    SOCKET,
    CHILD,
    TALK
};

static int tried(int r)
{
    return r < 0 ? errno : 0;
}

static int try_deed(void *arg, unsigned step, void *ret, struct pale_err *e)
{
    const int *unnamed = arg;
    char *const argv[] = {(char *)"true", NULL};
    char path[128];
    int found = -1;
    snprintf(path, sizeof(path), "%s/outside/%s", top, step == READ_OUTSIDE ? "b" : "new");
    switch ((enum deed)step) {
    case READ_INSIDE:
        found = tried(openat(inside_fd, "a", O_RDONLY | O_CLOEXEC));
        break;
    case WRITE_INSIDE:
        found = tried(openat(inside_fd, "new", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
        break;
    case MOVE_INSIDE:
        found = tried(renameat(inside_fd, "a", inside_fd, "sub/a"));
        break;
    case REMOVE:
        found = tried(unlinkat(inside_fd, "a", 0));
        break;
    case LINK:
        found = tried(linkat(inside_fd, "a", outside_fd, "a", 0));
        break;
    case CHANGE_LINKED:
        found = tried(openat(outside_fd, "a", O_WRONLY | O_CLOEXEC));
        break;
    case READ_OUTSIDE:
    case WRITE_OUTSIDE:
        found = tried(open(path, step == READ_OUTSIDE ? O_RDONLY | O_CLOEXEC : O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
        break;
    case READ_HOST:
        found = tried(open("/etc/passwd", O_RDONLY | O_CLOEXEC));
        break;
    case UNNAMED:
        found = tried(fcntl(*unnamed, F_GETFD));
        break;
    case PROGRAM:
        found = tried(execv("/bin/true", argv));
        break;
    case SOCKET:
        found = tried(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        break;
    case CHILD:
        found = tried(fork());
        break;
    case TALK:
        return err_set(e, PALE_CORRUPT, "a\x1b[31mred\nname");
    }
    memcpy(ret, &found, sizeof(found));
    return 0;
}

/* What becomes of a deed in seclusion: errno, 0, or -1 where the process did not live to tell. */
static int deed(enum deed which, enum landlock_use use)
{
    const struct landlock_place places[] = {{inside_fd, use}, {outside_fd, LANDLOCK_FILL}};
    const struct seclusion s = {.places = places, .place_count = use == LANDLOCK_LINK ? 2 : 1};
    own_secluded c = {.fd = -1};
    struct pale_err e = {0};
    int found = -2;
    assert_int_equal(seclusion_start(&c, &s, try_deed, &outside_fd, &e), 0);
    return seclusion_step(&c, which, &found, sizeof(found), &e) < 0 ? -1 : found;
}

static void reader_reads_its_folders_and_nothing_else(void **state)
{
    (void)state;
    if (landlock_abi() < 1)
        skip();
    assert_int_equal(deed(READ_INSIDE, LANDLOCK_READ), 0);
    assert_int_equal(deed(WRITE_INSIDE, LANDLOCK_READ), EACCES);
    assert_int_equal(deed(READ_OUTSIDE, LANDLOCK_READ), EACCES);
    assert_int_equal(deed(WRITE_OUTSIDE, LANDLOCK_READ), EACCES);
    assert_int_equal(deed(READ_HOST, LANDLOCK_READ), EACCES);
    assert_int_equal(deed(MOVE_INSIDE, LANDLOCK_READ), -1);
}

static void writer_writes_in_its_folders_and_nowhere_else(void **state)
{
    (void)state;
    if (landlock_abi() < 2)
        skip();
    assert_int_equal(deed(WRITE_INSIDE, LANDLOCK_WRITE), 0);
    assert_int_equal(deed(MOVE_INSIDE, LANDLOCK_WRITE), 0);
    assert_int_equal(deed(READ_OUTSIDE, LANDLOCK_WRITE), EACCES);
    assert_int_equal(deed(WRITE_OUTSIDE, LANDLOCK_WRITE), EACCES);
    assert_int_equal(deed(READ_HOST, LANDLOCK_WRITE), EACCES);
}

/* As layers are welded: the file gets a second name, and is nowhere to be written. */
static void who_links_can_neither_write_nor_remove(void **state)
{
    (void)state;
    if (landlock_abi() < 2)
        skip();
    assert_int_equal(deed(LINK, LANDLOCK_LINK), 0);
    assert_int_equal(deed(WRITE_INSIDE, LANDLOCK_FILL), EACCES);
    assert_int_equal(deed(CHANGE_LINKED, LANDLOCK_LINK), EACCES);
    assert_int_equal(deed(REMOVE, LANDLOCK_FILL), EACCES);
    assert_int_equal(deed(REMOVE, LANDLOCK_LINK), EACCES);
}

static void neither_runs_programs_nor_makes_sockets_nor_processes(void **state)
{
    (void)state;
    for (int use = LANDLOCK_READ; use < LANDLOCK_USE_COUNT; use++) {
        assert_int_equal(deed(PROGRAM, (enum landlock_use)use), -1);
        assert_int_equal(deed(SOCKET, (enum landlock_use)use), -1);
        assert_int_equal(deed(CHILD, (enum landlock_use)use), -1);
    }
}

static void descriptors_that_are_not_named_are_closed(void **state)
{
    (void)state;
    assert_int_equal(deed(UNNAMED, LANDLOCK_READ), EBADF);
}

static void what_a_child_says_is_tamed(void **state)
{
    (void)state;
    const struct landlock_place places[] = {{inside_fd, LANDLOCK_READ}};
    const struct seclusion s = {.places = places, .place_count = 1};
    own_secluded c = {.fd = -1};
    struct pale_err e = {0};
    assert_int_equal(seclusion_start(&c, &s, try_deed, NULL, &e), 0);
    assert_int_equal(seclusion_step(&c, TALK, NULL, 0, &e), -PALE_CORRUPT);
    assert_string_equal(e.text, "a?[31mred?name");
}

/* It goes on, step by step, in one process. */
static int count_up(void *arg, unsigned step, void *ret, struct pale_err *e)
{
    int *count = arg;
    (void)e;
    *count += (int)step;
    memcpy(ret, count, sizeof(*count));
    return 0;
}

static void steps_are_done_by_one_process_one_after_another(void **state)
{
    (void)state;
    const struct seclusion s = {0};
    own_secluded c = {.fd = -1};
    struct pale_err e = {0};
    int count = 1, found = 0;
    assert_int_equal(seclusion_start(&c, &s, count_up, &count, &e), 0);
    assert_int_equal(seclusion_step(&c, 2, &found, sizeof(found), &e), 0);
    assert_int_equal(seclusion_step(&c, 3, &found, sizeof(found), &e), 0);
    assert_int_equal(found, 6);
    assert_int_equal(count, 1);
}

TESTS(cmocka_unit_test_setup_teardown(reader_reads_its_folders_and_nothing_else, make_folders, remove_folders),
      cmocka_unit_test_setup_teardown(writer_writes_in_its_folders_and_nowhere_else, make_folders, remove_folders),
      cmocka_unit_test_setup_teardown(who_links_can_neither_write_nor_remove, make_folders, remove_folders),
      cmocka_unit_test_setup_teardown(neither_runs_programs_nor_makes_sockets_nor_processes, make_folders, remove_folders),
      cmocka_unit_test_setup_teardown(descriptors_that_are_not_named_are_closed, make_folders, remove_folders),
      cmocka_unit_test_setup_teardown(what_a_child_says_is_tamed, make_folders, remove_folders),
      cmocka_unit_test(steps_are_done_by_one_process_one_after_another))
