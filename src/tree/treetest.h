/* SPDX-License-Identifier: Apache-2.0 */
/* What the cases of tree/ share: a scratch folder, and trees and layers made in it by short words. */
#pragma once

#include "base/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "tree/leaf.h"
#include "tree/view.h"

#define CASE(f) cmocka_unit_test_setup_teardown(f, fresh, clean)

static char top[] = "/tmp/pale-tree-XXXXXX";
static int top_fd = -1;

static inline int fresh(void **state)
{
    (void)state;
    umask(022);
    memcpy(top + sizeof(top) - 7, "XXXXXX", 6);
    return !mkdtemp(top) || (top_fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0;
}

static inline int clean(void **state)
{
    (void)state;
    struct pale_err e = {0};
    close(top_fd);
    int r = fd_remove_tree(AT_FDCWD, top, &e);
    if (r < 0)
        print_message("%s\n", e.text);
    return r;
}

static inline int folder(const char *path)
{
    char part[256];
    for (const char *at = path; at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL) {
        const char *slash = strchr(at, '/');
        snprintf(part, sizeof(part), "%.*s", slash ? (int)(slash - path) : (int)strlen(path), path);
        (void)mkdirat(top_fd, part, 0755);
    }
    int fd = openat(top_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

/* Makes the folders above a path. */
static inline void above(const char *path)
{
    char part[256];
    snprintf(part, sizeof(part), "%s", path);
    char *slash = strrchr(part, '/');
    if (slash) {
        *slash = 0;
        close(folder(part));
    }
}

static inline void put_bytes(const char *path, const void *p, size_t n, mode_t mode)
{
    above(path);
    own_fd fd = openat(top_fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0 && fd_write_full(fd, p, n) && fchmod(fd, mode) == 0);
}

static inline void put(const char *path, const char *text)
{
    put_bytes(path, text, strlen(text), 0644);
}

static inline void put_link(const char *path, const char *to)
{
    above(path);
    assert_int_equal(symlinkat(to, top_fd, path), 0);
}

static inline void put_whiteout(const char *path)
{
    above(path);
    assert_int_equal(mknodat(top_fd, path, S_IFCHR | 0600, makedev(0, 0)), 0);
}

static inline void put_fifo(const char *path)
{
    above(path);
    assert_int_equal(mkfifoat(top_fd, path, 0644), 0);
}

static inline void set_attribute(const char *path, const char *name, const char *value)
{
    own_fd fd = openat(top_fd, path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    if (fsetxattr(fd, name, value, strlen(value), 0) < 0)
        skip(); /* the scratch folder's file system knows no attributes */
}

/* The content of a file below the scratch folder, "(none)" or, of a symlink, "-> target". */
static inline const char *text_of(const char *path)
{
    static char text[65536];
    ssize_t n = readlinkat(top_fd, path, text + 3, sizeof(text) - 4);
    if (n >= 0) {
        memcpy(text, "-> ", 3);
        text[n + 3] = 0;
        return text;
    }
    own_fd fd = openat(top_fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    n = fd < 0 ? -1 : fd_read_full(fd, text, sizeof(text) - 1);
    if (n < 0)
        return "(none)";
    text[n] = 0;
    return text;
}

static inline bool is_there(const char *path)
{
    return faccessat(top_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static inline mode_t mode_of(const char *path)
{
    struct stat st;
    assert_int_equal(fstatat(top_fd, path, &st, AT_SYMLINK_NOFOLLOW), 0);
    return st.st_mode & 07777;
}

/* Figures are taken with PALE_TREE_FULL=1; every other run makes a tenth of the files, which a busy disk takes a minute less for. */
static inline int scaled(int files)
{
    return getenv("PALE_TREE_FULL") ? files : files / 10;
}

/* A sequence of numbers that is the same in every run. */
static inline uint32_t next_number(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*seed >> 33);
}

#define assert_ok(call)                                                                                                                    \
    do {                                                                                                                                   \
        if ((call) < 0)                                                                                                                    \
            fail_msg("%s", e.text);                                                                                                        \
    } while (0)
