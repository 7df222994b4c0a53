/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for base/bundle: what goes in comes out, and a hostile stream cannot leave its folder. */
#include "base/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bundle.h"
#include "base/bundlehead.h"
#include "base/fd.h"

static char top[64];
static int from_fd, to_fd;

static int fresh(void **state)
{
    (void)state;
    snprintf(top, sizeof(top), "/tmp/bundle-test-XXXXXX");
    if (!mkdtemp(top))
        return -1;
    int dir = open(top, O_RDONLY | O_DIRECTORY);
    if (mkdirat(dir, "from", 0700) < 0 || mkdirat(dir, "to", 0700) < 0 || mkdirat(dir, "outside", 0700) < 0)
        return -1;
    from_fd = openat(dir, "from", O_RDONLY | O_DIRECTORY);
    to_fd = openat(dir, "to", O_RDONLY | O_DIRECTORY);
    close(dir);
    return from_fd < 0 || to_fd < 0 ? -1 : 0;
}

static int clean(void **state)
{
    (void)state;
    close(from_fd);
    close(to_fd);
    return fd_remove_tree(AT_FDCWD, top, NULL);
}

static void put(int dir, const char *name, const char *text, mode_t mode)
{
    int fd = openat(dir, name, O_WRONLY | O_CREAT, 0600);
    assert_true(fd >= 0 && fd_write_full(fd, text, strlen(text)));
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

static void expect(int dir, const char *name, const char *text)
{
    char got[256] = "";
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW);
    assert_true(fd >= 0);
    assert_int_equal(fd_read_full(fd, got, sizeof(got) - 1), (ssize_t)strlen(text));
    assert_string_equal(got, text);
    close(fd);
}

/* Sends in a child, as both ends may block on a full pipe. */
static int carry(const char *name, bool inner, struct bundle_count *count)
{
    int p[2];
    struct pale_err e;
    assert_int_equal(pipe(p), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct bundle_count sent;
        close(p[0]);
        _exit(bundle_send(p[1], from_fd, name, true, &sent, &e) < 0);
    }
    close(p[1]);
    int r = bundle_receive(p[0], to_fd, "copy", inner, count, &e);
    close(p[0]);
    waitpid(pid, NULL, 0);
    return r;
}

static void tree_round_trips_with_modes_and_links(void **state)
{
    (void)state;
    struct bundle_count c;
    struct stat st;
    char target[64] = "";
    assert_int_equal(mkdirat(from_fd, "tree", 0755), 0);
    assert_int_equal(mkdirat(from_fd, "tree/sub", 0700), 0);
    put(from_fd, "tree/a\nb", "hello", 0640);
    put(from_fd, "tree/sub/run", "#!/bin/sh\n", 04755);
    assert_int_equal(symlinkat("sub/run", from_fd, "tree/link"), 0);
    assert_int_equal(mkfifoat(from_fd, "tree/fifo", 0600), 0);
    assert_int_equal(carry("tree", true, &c), 0);
    expect(to_fd, "copy/a\nb", "hello");
    assert_int_equal(fstatat(to_fd, "copy/sub/run", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0755); /* setuid is dropped */
    assert_true(readlinkat(to_fd, "copy/link", target, sizeof(target)) > 0);
    assert_string_equal(target, "sub/run");
    assert_int_equal(faccessat(to_fd, "copy/fifo", F_OK, AT_SYMLINK_NOFOLLOW), -1);
    assert_int_equal(c.files, 2);
}

static void links_that_lead_out_are_skipped_when_asked(void **state)
{
    (void)state;
    struct bundle_count c;
    assert_int_equal(mkdirat(from_fd, "tree", 0755), 0);
    assert_int_equal(symlinkat("/etc/passwd", from_fd, "tree/absolute"), 0);
    assert_int_equal(symlinkat("../../x", from_fd, "tree/up"), 0);
    assert_int_equal(symlinkat("../tree/fine", from_fd, "tree/back"), 0);
    assert_int_equal(carry("tree", true, &c), 0);
    assert_int_equal(c.skipped, 3); /* the third leaves the tree on its way back, whatever it is called there */
    assert_int_equal(faccessat(to_fd, "copy/absolute", F_OK, AT_SYMLINK_NOFOLLOW), -1);
}

static void existing_symlinks_are_replaced_and_not_followed(void **state)
{
    (void)state;
    struct bundle_count c;
    char outside[96], file[128];
    snprintf(outside, sizeof(outside), "%s/outside", top);
    snprintf(file, sizeof(file), "%s/f", outside);
    assert_int_equal(mkdirat(from_fd, "tree", 0755), 0);
    put(from_fd, "tree/f", "new", 0644);
    assert_int_equal(symlinkat(outside, to_fd, "copy"), 0);
    assert_int_equal(carry("tree", true, &c), 0);
    expect(to_fd, "copy/f", "new");
    assert_int_equal(access(file, F_OK), -1);
}

static void name_that_leads_up_is_refused(void **state)
{
    (void)state;
    struct bundle_count c;
    struct pale_err e;
    int p[2];
    assert_int_equal(pipe(p), 0);
    close(p[1]);
    assert_int_equal(bundle_receive(p[0], to_fd, "..", true, &c, &e), -PALE_BAD_INPUT);
    assert_int_equal(bundle_receive(p[0], to_fd, "a/b", true, &c, &e), -PALE_BAD_INPUT);
    close(p[0]);
}

/* Writes raw bytes as a sender would and receives them. */
static int receive_raw(const void *p, size_t n)
{
    int fds[2];
    struct bundle_count c;
    assert_int_equal(pipe(fds), 0);
    assert_true(fd_write_full(fds[1], p, n));
    close(fds[1]);
    int r = bundle_receive(fds[0], to_fd, "copy", true, &c, NULL);
    close(fds[0]);
    return r;
}

static size_t raw_entry(uint8_t *at, enum bundle_type type, uint64_t size, const char *name)
{
    struct bundle_head h = {.type = type, .mode = *name ? 0400 : 0, .size = size, .name_len = (uint8_t)strlen(name)};
    return bundle_head_put(at, &h, name);
}

static void names_that_are_paths_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"..", ".", "a/b", "/etc", ""};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        uint8_t m[1024];
        size_t n = raw_entry(m, BUNDLE_FOLDER, 0, "dir");
        n += raw_entry(m + n, BUNDLE_FILE, 0, bad[i]);
        n += raw_entry(m + n, BUNDLE_LEAVE, 0, "");
        n += raw_entry(m + n, BUNDLE_END, 0, "");
        assert_int_equal(receive_raw(m, n), -PALE_CORRUPT);
    }
}

static void every_prefix_of_a_bundle_is_an_error(void **state)
{
    (void)state;
    uint8_t m[1024];
    size_t n = raw_entry(m, BUNDLE_FOLDER, 0, "dir");
    n += raw_entry(m + n, BUNDLE_FILE, 3, "file");
    memcpy(m + n, "abc", 3);
    n += 3;
    n += raw_entry(m + n, BUNDLE_LINK, 4, "link");
    memcpy(m + n, "file", 4);
    n += 4;
    n += raw_entry(m + n, BUNDLE_LEAVE, 0, "");
    n += raw_entry(m + n, BUNDLE_END, 0, "");
    for (size_t i = 0; i < n; i++)
        assert_true(receive_raw(m, i) < 0);
    assert_int_equal(receive_raw(m, n), 0);
    expect(to_fd, "copy/file", "abc");
}

static void leaving_more_than_was_entered_is_refused(void **state)
{
    (void)state;
    uint8_t m[1024];
    size_t n = raw_entry(m, BUNDLE_FOLDER, 0, "dir");
    n += raw_entry(m + n, BUNDLE_LEAVE, 0, "");
    n += raw_entry(m + n, BUNDLE_LEAVE, 0, "");
    assert_int_equal(receive_raw(m, n), -PALE_CORRUPT);
}

static void link_to_a_file_elsewhere_is_sent_as_that_file(void **state)
{
    (void)state;
    struct bundle_count c;
    assert_int_equal(mkdirat(from_fd, "sub", 0755), 0);
    put(from_fd, "sub/file", "hello", 0640);
    assert_int_equal(symlinkat("sub/file", from_fd, "first"), 0);
    assert_int_equal(symlinkat("first", from_fd, "second"), 0);
    assert_int_equal(carry("second", true, &c), 0);
    expect(to_fd, "copy", "hello");
    assert_int_equal(c.files, 1);
}

static void folder_without_a_name_is_sent(void **state)
{
    (void)state;
    static const char *const names[] = {".", "sub/", "sub/.."};
    struct bundle_count c;
    assert_int_equal(mkdirat(from_fd, "sub", 0755), 0);
    put(from_fd, "sub/file", "hello", 0640);
    put(from_fd, "file", "hello", 0640);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(carry(names[i], true, &c), 0);
        expect(to_fd, "copy/file", "hello");
        assert_int_equal(fd_remove_tree(to_fd, "copy", NULL), 0);
    }
}

static void folder_that_is_there_is_filled_and_not_emptied(void **state)
{
    (void)state;
    struct bundle_count c;
    struct stat st;
    assert_int_equal(mkdirat(from_fd, "tree", 0755), 0);
    assert_int_equal(mkdirat(to_fd, "copy", 0700), 0);
    put(from_fd, "tree/both", "new", 0644);
    put(to_fd, "copy/both", "old", 0600);
    put(to_fd, "copy/mine", "stays", 0600);
    assert_int_equal(carry("tree", true, &c), 0);
    expect(to_fd, "copy/both", "new");
    expect(to_fd, "copy/mine", "stays");
    assert_int_equal(fstatat(to_fd, "copy", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
}

/* Makes folders in one another, each called d. */
static void nest(int depth)
{
    int at = dup(from_fd);
    for (int i = 0; i < depth; i++) {
        assert_int_equal(mkdirat(at, "d", 0700), 0);
        int next = openat(at, "d", O_RDONLY | O_DIRECTORY);
        close(at);
        at = next;
    }
    close(at);
}

static void as_deep_as_is_sent_is_received_and_no_deeper(void **state)
{
    (void)state;
    struct bundle_count c;
    nest(BUNDLE_DEPTH_MAX);
    assert_int_equal(carry("d", true, &c), 0);
    assert_int_equal(c.folders, BUNDLE_DEPTH_MAX);
    assert_int_equal(renameat(from_fd, "d", from_fd, "e"), 0);
    assert_int_equal(mkdirat(from_fd, "d", 0700), 0);
    assert_int_equal(renameat(from_fd, "e", from_fd, "d/d"), 0);
    assert_int_equal(carry("d", true, &c), -PALE_GONE);
}

#define LONG_FILE (1u << 20)

/* Sends a long file that becomes `then` bytes long when its head is out; returns how often it says that a file changed. What comes
 * must be a whole bundle of the size first told, and of the bytes of the file as far as it still went. */
static int send_changing(size_t then)
{
    static char got[LONG_FILE + 256];
    int p[2], status;
    int fd = openat(from_fd, "long", O_RDWR | O_CREAT, 0600);
    memset(got, 'x', LONG_FILE);
    assert_true(fd_write_full(fd, got, LONG_FILE));
    assert_int_equal(pipe(p), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct bundle_count sent;
        close(p[0]);
        _exit(bundle_send(p[1], from_fd, "long", true, &sent, NULL) < 0 || sent.bytes != LONG_FILE ? 99 : (int)sent.changed);
    }
    close(p[1]);
    size_t head = BUNDLE_HEAD_BYTES + 4;
    assert_int_equal(fd_read_full(p[0], got, head), (ssize_t)head);
    assert_int_equal(ftruncate(fd, (off_t)then), 0);
    assert_int_equal(fd_read_full(p[0], got, sizeof(got)), LONG_FILE + BUNDLE_HEAD_BYTES);
    assert_int_equal(got[0], 'x');
    assert_int_equal(got[LONG_FILE - 1], then < LONG_FILE ? 0 : 'x');
    assert_int_equal(got[LONG_FILE], BUNDLE_END);
    close(p[0]);
    close(fd);
    waitpid(pid, &status, 0);
    return WEXITSTATUS(status);
}

static void file_that_shrinks_or_grows_keeps_the_size_that_was_told(void **state)
{
    (void)state;
    assert_int_equal(send_changing(LONG_FILE), 0);
    assert_int_equal(send_changing(LONG_FILE / 2), 1);
    assert_int_equal(send_changing(LONG_FILE + 1), 1);
}

static void file_of_unknown_size_is_sent_whole(void **state)
{
    (void)state;
    struct bundle_count c;
    struct stat st;
    int proc = open("/proc", O_RDONLY | O_DIRECTORY);
    assert_true(proc >= 0);
    assert_int_equal(dup2(proc, from_fd), from_fd);
    close(proc);
    assert_int_equal(fstatat(from_fd, "version", &st, 0), 0);
    assert_int_equal(st.st_size, 0);
    assert_int_equal(carry("version", true, &c), 0);
    assert_true(c.bytes > 0);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, fresh, clean)
TESTS(CASE(tree_round_trips_with_modes_and_links), CASE(links_that_lead_out_are_skipped_when_asked),
      CASE(existing_symlinks_are_replaced_and_not_followed), CASE(name_that_leads_up_is_refused), CASE(names_that_are_paths_are_refused),
      CASE(every_prefix_of_a_bundle_is_an_error), CASE(leaving_more_than_was_entered_is_refused),
      CASE(link_to_a_file_elsewhere_is_sent_as_that_file), CASE(folder_without_a_name_is_sent),
      CASE(folder_that_is_there_is_filled_and_not_emptied), CASE(as_deep_as_is_sent_is_received_and_no_deeper),
      CASE(file_that_shrinks_or_grows_keeps_the_size_that_was_told), CASE(file_of_unknown_size_is_sent_whole))
