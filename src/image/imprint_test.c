/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for image/imprint and image/inventory, on trees in a folder of their own. */
#include "base/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "image/imprint.h"

static char dir[64], listed[80];
static int root;
static struct imprint im;
static struct pale_err e;

static int fresh(void **state)
{
    (void)state;
    umask(022);
    snprintf(dir, sizeof(dir), "/tmp/imprint-test-XXXXXX");
    if (!mkdtemp(dir) || chmod(dir, 0755) < 0)
        return -1;
    snprintf(listed, sizeof(listed), "%s.list", dir);
    return (root = open(dir, O_RDONLY | O_DIRECTORY)) >= 0 ? 0 : -1;
}

static int clean(void **state)
{
    (void)state;
    close(root);
    unlink(listed);
    return fd_remove_tree(AT_FDCWD, dir, NULL);
}

static void put(const char *name, const char *text, mode_t mode)
{
    int fd = openat(root, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0 && fd_write_full(fd, text, strlen(text)) && fchmod(fd, mode) == 0);
    close(fd);
}

static int take(bool mend, const char *preface)
{
    imprint_init(&im, root);
    im.mend = mend;
    im.preface = preface;
    im.inventory_fd = open(listed, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    int r = imprint_take(&im, &e);
    close(im.inventory_fd);
    return r;
}

static int compare(void)
{
    imprint_init(&im, root);
    im.expected_fd = open(listed, O_RDONLY);
    int r = imprint_take(&im, &e);
    close(im.expected_fd);
    return r;
}

static void the_inventory_is_what_the_header_says(void **state)
{
    (void)state;
    char text[2048];
    put("b", "hello", 0644);
    assert_int_equal(mkdirat(root, "a", 0750), 0);
    put("a/x y\\\n", "", 0600);
    assert_int_equal(symlinkat("../b c", root, "a/l"), 0);
    put("a-", "", 0400);
    assert_int_equal(take(false, "# env A\n"), 0);
    int fd = open(listed, O_RDONLY);
    ssize_t n = fd_read_full(fd, text, sizeof(text) - 1);
    close(fd);
    text[n] = 0;
    assert_string_equal(text, "# env A\nd 0755\t.\nd 0750\ta\nl\ta/l\t../b\\x20c\n"
                              "f 0600 0 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\ta/x\\x20y\\x5c\\x0a\n"
                              "f 0400 0 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\ta-\n"
                              "f 0644 5 2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824\tb\n");
    char hex[SHA256_HEX];
    sha256_hex(text, (size_t)n, hex);
    assert_string_equal(im.digest, hex);
    assert_int_equal(im.files, 3);
    assert_int_equal(im.folders, 2);
    assert_int_equal(im.links, 1);
    assert_int_equal(im.bytes, 5);
}

static void mending_makes_an_image_of_it(void **state)
{
    (void)state;
    struct stat st;
    put("su", "x", 06755);
    put("none", "x", 0);
    assert_int_equal(mkdirat(root, "closed", 0), 0);
    assert_int_equal(mkfifoat(root, "fifo", 0600), 0);
    put("marked", "x", 0644);
    int fd = openat(root, "marked", O_RDONLY);
    bool has_attribute = fsetxattr(fd, "user.overlay.opaque", "y", 1, 0) == 0;
    close(fd);
    assert_int_equal(take(true, ""), 0);
    assert_int_equal(im.left.count[LEFT_SET_BITS], 1);
    assert_int_equal(im.left.count[LEFT_MODE], 2);
    assert_int_equal(im.left.count[LEFT_FIFO], 1);
    assert_int_equal(im.left.count[LEFT_ATTRIBUTES], has_attribute);
    assert_int_equal(fstatat(root, "su", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0755);
    assert_int_equal(fstatat(root, "closed", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(fstatat(root, "fifo", &st, 0), -1);
    assert_int_equal(compare(), 0);
}

static void the_first_difference_is_named(void **state)
{
    (void)state;
    put("a", "1", 0644);
    put("b", "2", 0644);
    put("c", "3", 0644);
    assert_int_equal(take(true, ""), 0);
    assert_int_equal(compare(), 0);
    put("b", "9", 0644);
    put("c", "9", 0644);
    assert_int_equal(compare(), -PALE_CORRUPT);
    assert_non_null(strstr(e.text, "b is not what it was when the image was built: its content"));
    unlinkat(root, "b", 0);
    assert_int_equal(compare(), -PALE_CORRUPT);
    assert_non_null(strstr(e.text, "b is missing"));
    put("b", "2", 0644);
    put("c", "3", 0644);
    put("aa", "", 0644);
    assert_int_equal(compare(), -PALE_CORRUPT);
    assert_non_null(strstr(e.text, "aa is in the image and was not"));
    unlinkat(root, "aa", 0);
    put("z", "", 0644);
    assert_int_equal(compare(), -PALE_CORRUPT);
    assert_non_null(strstr(e.text, "z is in the image and was not"));
    unlinkat(root, "z", 0);
    unlinkat(root, "c", 0);
    assert_int_equal(compare(), -PALE_CORRUPT);
    assert_non_null(strstr(e.text, "c is missing"));
}

static void folders_have_a_depth(void **state)
{
    (void)state;
    int at = dup(root);
    for (int i = 0; i < IMPRINT_DEPTH_MAX; i++) {
        assert_int_equal(mkdirat(at, "d", 0755), 0);
        int next = openat(at, "d", O_RDONLY | O_DIRECTORY);
        close(at);
        at = next;
    }
    close(at);
    assert_int_equal(take(true, ""), -PALE_LIMIT);
}

static void who_is_told_to_stop_stops(void **state)
{
    (void)state;
    static volatile sig_atomic_t stop = 1;
    put("a", "1", 0644);
    imprint_init(&im, root);
    im.stop = &stop;
    assert_int_equal(imprint_take(&im, &e), -PALE_GONE);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, fresh, clean)
TESTS(CASE(the_inventory_is_what_the_header_says), CASE(mending_makes_an_image_of_it), CASE(the_first_difference_is_named),
      CASE(folders_have_a_depth), CASE(who_is_told_to_stop_stops))
