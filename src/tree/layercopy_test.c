/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for tree/descent, tree/layercopy and tree/layerdigest. */
#include "tree/treetest.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "tree/layercopy.h"
#include "tree/layerdigest.h"

static char poisons[4096];

static void note(void *arg, const char *path, const char *reason)
{
    (void)arg;
    size_t n = strlen(poisons);
    snprintf(poisons + n, sizeof(poisons) - n, "%s: %s;", path, reason);
}

static const char *digest_of(const char *path)
{
    static char hex[2][SHA256_HEX];
    static int turn;
    struct pale_err e = {0};
    struct layerdigest d = {.poison = note};
    own_fd fd = folder(path);
    poisons[0] = 0;
    assert_ok(layerdigest_run(&d, fd, &e));
    turn = !turn;
    sha256_to_hex(d.digest, hex[turn]);
    return hex[turn];
}

static void make_layer(void)
{
    put("layer/file", "content");
    put_bytes("layer/run", "x", 1, 0751);
    put_link("layer/link", "/somewhere");
    put_whiteout("layer/gone");
    put_fifo("layer/fifo");
    put("layer/d/in", "x");
    assert_int_equal(linkat(top_fd, "layer/file", top_fd, "layer/d/twin", 0), 0);
    assert_int_equal(mknodat(top_fd, "layer/socket", S_IFSOCK | 0600, 0), 0);
    set_attribute("layer/d", "user.overlay.opaque", "y");
    set_attribute("layer/file", "user.note", "kept");
    assert_int_equal(fchmodat(top_fd, "layer/d", 0500, 0), 0);
    struct timespec times[2] = {{.tv_sec = 1000000, .tv_nsec = 5}, {.tv_sec = 1000001, .tv_nsec = 7}};
    assert_int_equal(utimensat(top_fd, "layer/file", times, 0), 0);
    assert_int_equal(utimensat(top_fd, "layer/link", times, AT_SYMLINK_NOFOLLOW), 0);
    assert_int_equal(utimensat(top_fd, "layer/d", times, 0), 0);
}

static struct layercopy_count copy(bool twice)
{
    struct pale_err e = {0};
    struct layercopy *c = NULL;
    own_fd from = folder("layer"), to = folder("copy");
    assert_ok(layercopy_new(from, to, &c, &e));
    if (twice)
        assert_ok(layercopy_first(c, &e));
    assert_ok(layercopy_second(c, &e));
    struct layercopy_count n = *layercopy_count(c);
    layercopy_free(c);
    return n;
}

static void check_same(const char *path)
{
    struct stat a, b;
    char one[128], two[128];
    snprintf(one, sizeof(one), "layer/%s", path);
    snprintf(two, sizeof(two), "copy/%s", path);
    assert_int_equal(fstatat(top_fd, one, &a, AT_SYMLINK_NOFOLLOW) | fstatat(top_fd, two, &b, AT_SYMLINK_NOFOLLOW), 0);
    assert_true(a.st_mode == b.st_mode && a.st_rdev == b.st_rdev && a.st_uid == b.st_uid);
    assert_true(a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec);
}

static void everything_is_kept(void **state)
{
    (void)state;
    for (int twice = 0; twice < 2; twice++) {
        struct stat a, b;
        char value[8] = {0};
        assert_int_equal(fd_remove_tree(top_fd, "layer", NULL) | fd_remove_tree(top_fd, "copy", NULL), 0);
        make_layer();
        struct layercopy_count n = copy(twice);
        assert_int_equal(n.files, 4);
        assert_int_equal(n.hard_links, twice ? 2 : 1); /* everything is too young to be trusted, so the second pass makes it anew */
        static const char *const paths[] = {"file", "run", "link", "gone", "fifo", "socket", "d", "d/in"};
        for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
            check_same(paths[i]);
        assert_int_equal(fstatat(top_fd, "copy/file", &a, 0) | fstatat(top_fd, "copy/d/twin", &b, 0), 0);
        assert_int_equal(a.st_ino, b.st_ino);
        own_fd fd = openat(top_fd, "copy/file", O_RDONLY | O_CLOEXEC);
        assert_int_equal(fgetxattr(fd, "user.note", value, sizeof(value)), 4);
        assert_string_equal(digest_of("layer"), digest_of("copy"));
    }
}

static void second_pass_makes_only_what_changed(void **state)
{
    (void)state;
    struct pale_err e = {0};
    struct layercopy *c = NULL;
    own_fd from = folder("layer"), to = folder("copy");
    char path[64];
    for (int i = 0; i < 100; i++) {
        snprintf(path, sizeof(path), "layer/d%d/%d", i % 7, i);
        put(path, "x");
    }
    put("layer/to-folder", "x");
    put("layer/to-file/in", "x");
    assert_ok(layercopy_new(from, to, &c, &e));
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    assert_ok(layercopy_first(c, &e));
    put("layer/d1/1", "y");
    put("layer/new", "z");
    assert_int_equal(unlinkat(top_fd, "layer/d2/2", 0), 0);
    assert_int_equal(fd_remove_tree(top_fd, "layer/d3", NULL), 0);
    assert_int_equal(unlinkat(top_fd, "layer/to-folder", 0) | fd_remove_tree(top_fd, "layer/to-file", NULL), 0);
    put("layer/to-folder/in", "x");
    put("layer/to-file", "x");
    assert_ok(layercopy_second(c, &e));
    assert_int_equal(layercopy_count(c)->again, 4);
    assert_int_equal(layercopy_count(c)->removed, 2);
    assert_string_equal(digest_of("layer"), digest_of("copy"));
    layercopy_free(c);
}

static void devices_end_the_copy(void **state)
{
    (void)state;
    struct pale_err e = {0};
    struct layercopy *c = NULL;
    own_fd from = folder("layer"), to = folder("copy");
    if (mknodat(top_fd, "layer/null", S_IFCHR | 0666, makedev(1, 3)) < 0)
        skip(); /* only root can make one */
    assert_ok(layercopy_new(from, to, &c, &e));
    assert_int_equal(layercopy_second(c, &e), -PALE_CORRUPT);
    assert_non_null(strstr(e.text, "null"));
    layercopy_free(c);
}

/* Somebody swaps folders for links, files for FIFOs, and back, as fast as it goes. */
static pid_t disturb(void)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (uint64_t seed = 1;; next_number(&seed)) {
        (void)renameat(top_fd, "layer/d", top_fd, "layer/e");
        (void)!symlinkat("../outside", top_fd, "layer/d");
        (void)unlinkat(top_fd, "layer/d", 0);
        (void)renameat(top_fd, "layer/e", top_fd, "layer/d");
        (void)unlinkat(top_fd, "layer/d/f", 0);
        (void)mkfifoat(top_fd, "layer/d/f", 0600);
        (void)unlinkat(top_fd, "layer/d/f", 0);
        (void)!symlinkat("../../outside/secret", top_fd, "layer/d/f");
        (void)unlinkat(top_fd, "layer/d/f", 0);
        own_fd fd = openat(top_fd, "layer/d/f", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        (void)!write(fd, "x", 1);
    }
}

static void tree_that_changes_is_copied_and_nothing_else(void **state)
{
    (void)state;
    struct pale_err e = {0};
    put("outside/secret", "canary");
    put("layer/d/f", "x");
    put("layer/d/g", "x");
    pid_t pid = disturb();
    for (int i = 0; i < 300; i++) {
        struct layercopy *c = NULL;
        own_fd from = folder("layer"), to = folder("copy");
        assert_ok(layercopy_new(from, to, &c, &e));
        assert_ok(layercopy_first(c, &e));
        struct leaf l = {0}; /* a link to the outside may have been copied, as a link */
        assert_true(leaf_look(to, "d/secret", false, &l, NULL) < 0 || l.kind == LEAF_NONE);
        assert_true(leaf_look(to, "d/f", false, &l, NULL) < 0 || l.kind != LEAF_FILE || l.st.st_size <= 1);
        layercopy_free(c);
        assert_int_equal(fd_remove_tree(top_fd, "copy", NULL), 0);
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    (void)copy(true);
    assert_string_equal(digest_of("layer"), digest_of("copy"));
}

static void digest_sees_every_difference(void **state)
{
    (void)state;
    make_layer();
    assert_int_equal(fchmodat(top_fd, "layer/d", 0755, 0), 0); /* so that its attributes can be set */
    char first[SHA256_HEX];
    snprintf(first, sizeof(first), "%s", digest_of("layer"));
    assert_string_equal(digest_of("layer"), first);
    struct timespec times[2] = {{.tv_sec = 5}, {.tv_sec = 5}};
    assert_int_equal(utimensat(top_fd, "layer/file", times, 0), 0);
    assert_string_equal(digest_of("layer"), first); /* times do not count */
    assert_int_equal(fchmodat(top_fd, "layer/run", 0755, 0), 0);
    assert_string_not_equal(digest_of("layer"), first);
    assert_int_equal(fchmodat(top_fd, "layer/run", 0751, 0), 0);
    set_attribute("layer/d", "user.overlay.opaque", "x");
    assert_string_not_equal(digest_of("layer"), first);
    set_attribute("layer/d", "user.overlay.opaque", "y");
    assert_string_equal(digest_of("layer"), first);
    assert_int_equal(renameat(top_fd, "layer/gone", top_fd, "layer/gonf"), 0);
    assert_string_not_equal(digest_of("layer"), first);
    assert_int_equal(renameat(top_fd, "layer/gonf", top_fd, "layer/gone"), 0);
    put("layer/file", "contenT");
    assert_string_not_equal(digest_of("layer"), first);
}

/* A file of that size with one byte at a place; the rest is holes, or zeros that are written down. */
static void put_sparse(const char *path, off_t size, off_t at, bool dense)
{
    static const char zeros[65536];
    above(path);
    own_fd fd = openat(top_fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0 && ftruncate(fd, size) == 0);
    for (off_t i = 0; dense && i < size; i += (off_t)sizeof(zeros))
        assert_true(pwrite(fd, zeros, size - i < (off_t)sizeof(zeros) ? (size_t)(size - i) : sizeof(zeros), i) > 0);
    assert_int_equal(pwrite(fd, "x", 1, at), 1);
}

static void digest_of_holes_is_that_of_zeros(void **state)
{
    static const off_t places[] = {0, 262143, 262144, 700000, 999999};
    (void)state;
    char last[SHA256_HEX] = "";
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        put_sparse("sparse/f", 1000000, places[i], false);
        put_sparse("dense/f", 1000000, places[i], true);
        assert_string_equal(digest_of("sparse"), digest_of("dense"));
        assert_string_not_equal(digest_of("sparse"), last); /* where the byte stands counts */
        snprintf(last, sizeof(last), "%s", digest_of("sparse"));
    }
    put_sparse("sparse/f", 1000001, 999999, false); /* and so does the size */
    assert_string_not_equal(digest_of("sparse"), last);
}

static void digest_of_a_huge_file_reads_what_is_written(void **state)
{
    (void)state;
    put_sparse("layer/huge", (off_t)1 << 42, ((off_t)1 << 42) - 1, false); /* would take an hour */
    (void)digest_of("layer");
}

static void poison_is_named(void **state)
{
    (void)state;
    put("layer/fine", "x");
    put_whiteout("layer/gone");
    put_bytes("layer/setuid", "x", 1, 04755);
    put_bytes("layer/setgid", "x", 1, 02755);
    put("layer/steered", "x");
    set_attribute("layer/steered", "user.overlay.metacopy", "");
    (void)digest_of("layer");
    assert_string_equal(poisons, "setgid: runs as its group (setgid);setuid: runs as its owner (setuid);"
                                 "steered: has an attribute by which the overlay is steered;");
    if (mknodat(top_fd, "layer/a-device", S_IFCHR | 0666, makedev(1, 3)) == 0) {
        (void)digest_of("layer");
        assert_non_null(strstr(poisons, "a-device: a device;"));
    }
}

static long since(const struct timespec *from)
{
    struct timespec to;
    clock_gettime(CLOCK_MONOTONIC, &to);
    return (to.tv_sec - from->tv_sec) * 1000 + (to.tv_nsec - from->tv_nsec) / 1000000;
}

/* 100 MiB in that many files: how long each pass takes. */
static void measure(int files)
{
    struct pale_err e = {0};
    struct layercopy *c = NULL;
    struct timespec from;
    own_fd layer = folder("layer"), to = folder("copy");
    size_t size = (100u << 20) / (size_t)files;
    char *content = malloc(size), path[64];
    assert_non_null(content);
    memset(content, 'x', size);
    for (int i = 0; i < files; i++) {
        snprintf(path, sizeof(path), "layer/%d/%d", i % 100, i);
        put_bytes(path, content, size, 0644);
    }
    free(content);
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    assert_ok(layercopy_new(layer, to, &c, &e));
    clock_gettime(CLOCK_MONOTONIC, &from);
    assert_ok(layercopy_first(c, &e));
    long first = since(&from);
    clock_gettime(CLOCK_MONOTONIC, &from);
    assert_ok(layercopy_second(c, &e));
    print_message("100 MiB in %d files: first pass %ld ms, second %ld ms\n", files, first, since(&from));
    assert_int_equal(layercopy_count(c)->again, 0);
    clock_gettime(CLOCK_MONOTONIC, &from);
    (void)digest_of("copy");
    print_message("its digest: %ld ms\n", since(&from));
    layercopy_free(c);
}

static void large_files_are_copied_fast(void **state)
{
    (void)state;
    measure(1);
}

static void many_files_are_copied_fast(void **state)
{
    (void)state;
    measure(scaled(10000));
}

TESTS(CASE(everything_is_kept), CASE(second_pass_makes_only_what_changed), CASE(devices_end_the_copy),
      CASE(tree_that_changes_is_copied_and_nothing_else), CASE(digest_sees_every_difference), CASE(digest_of_holes_is_that_of_zeros),
      CASE(digest_of_a_huge_file_reads_what_is_written), CASE(poison_is_named), CASE(large_files_are_copied_fast),
      CASE(many_files_are_copied_fast))
