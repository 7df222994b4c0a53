/* SPDX-License-Identifier: Apache-2.0 */
/* Owns looking at one name of a hostile tree. */
#include "tree/leaf.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <linux/stat.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/own.h"
#include "base/quote.h"
#include "base/weak.h"

#define SHOWN_MAX 240
#define CHUNK 65536

static const char *const kind_names[] = {
    [LEAF_NONE] = "none", [LEAF_FILE] = "file",     [LEAF_FOLDER] = "folder", [LEAF_LINK] = "link",
    [LEAF_FIFO] = "fifo", [LEAF_SOCKET] = "socket", [LEAF_DEVICE] = "device", [LEAF_WHITEOUT] = "whiteout",
};
static_assert(sizeof(kind_names) / sizeof(kind_names[0]) == LEAF_KIND_COUNT, "a name for every kind");

const char *leaf_kind_name(enum leaf_kind kind)
{
    return (unsigned)kind < LEAF_KIND_COUNT ? kind_names[kind] : "none";
}

static int fail_os(struct pale_err *e, const char *what, const char *path)
{
    int os = errno;
    char shown[SHOWN_MAX];
    quote_into(shown, sizeof(shown), path, strlen(path));
    if (os == ELOOP || os == EXDEV)
        return err_set(e, PALE_BUSY, "%s %s: a symlink stands on the way, and none is followed", what, shown);
    if (os == ENAMETOOLONG)
        return err_set(e, PALE_LIMIT, "%s %s: it lies too deep", what, shown);
    errno = os;
    return err_os(e, "%s %s", what, shown);
}

static enum leaf_kind kind_of(const struct stat *st)
{
    switch (st->st_mode & S_IFMT) {
    case S_IFREG:
        return LEAF_FILE;
    case S_IFDIR:
        return LEAF_FOLDER;
    case S_IFLNK:
        return LEAF_LINK;
    case S_IFIFO:
        return weak_word("plain-open") ? LEAF_FILE : LEAF_FIFO;
    case S_IFSOCK:
        return LEAF_SOCKET;
    case S_IFCHR:
        return st->st_rdev == makedev(0, 0) ? LEAF_WHITEOUT : LEAF_DEVICE;
    default:
        return LEAF_DEVICE;
    }
}

/* What the overlay's attributes mean. Those that are not here are nobody's to write. */
enum mark { MARK_POISON, MARK_IGNORED, MARK_OPAQUE, MARK_WHITEOUT };

static enum mark mark_of(const char *name)
{
    static const struct {
        const char *name;
        enum mark mark;
    } rows[] = {
        {"origin", MARK_IGNORED},   {"impure", MARK_IGNORED}, {"nlink", MARK_IGNORED},     {"uuid", MARK_IGNORED},
        {"protattr", MARK_IGNORED}, {"opaque", MARK_OPAQUE},  {"whiteout", MARK_WHITEOUT},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strcmp(rows[i].name, name) == 0)
            return rows[i].mark;
    /* What an overlay inside the box wrote is kept for it under this prefix, and means nothing to ours. */
    return strncmp(name, "overlay.", 8) == 0 ? MARK_IGNORED : MARK_POISON;
}

static int read_mark(const char *at, const char *path, const char *attribute, struct leaf *ret, struct pale_err *e)
{
    char value[4] = {0}, shown[SHOWN_MAX], named[80];
    switch (mark_of(attribute + strlen("user.overlay."))) {
    case MARK_IGNORED:
        return 0;
    case MARK_WHITEOUT:
        ret->marked_deleted = ret->kind == LEAF_FILE && ret->st.st_size == 0;
        return 0;
    case MARK_OPAQUE:
        if (getxattr(at, attribute, value, sizeof(value)) < 0)
            return fail_os(e, "read what hides below", path);
        ret->opaque = ret->kind == LEAF_FOLDER && strcmp(value, "y") == 0;
        ret->has_whiteouts = ret->kind == LEAF_FOLDER && strcmp(value, "x") == 0;
        return 0;
    case MARK_POISON:
    default:
        return err_set(e, PALE_CORRUPT, "%s has the attribute %s, which no box can set by itself; do not use this layer",
                       quote_into(shown, sizeof(shown), path, strlen(path)),
                       quote_into(named, sizeof(named), attribute, strlen(attribute)));
    }
}

/* The names of the attributes; a list that is longer than the kernel's own limit cannot be. */
static ssize_t list_attributes(const char *at, char *small, size_t cap, char **ret_large)
{
    ssize_t n = listxattr(at, small, cap);
    if (n >= 0 || errno != ERANGE)
        return n;
    *ret_large = malloc(XATTR_LIST_BYTES_MAX);
    return *ret_large ? listxattr(at, *ret_large, XATTR_LIST_BYTES_MAX) : -1;
}

static int read_marks(int fd, const char *path, struct leaf *ret, struct pale_err *e)
{
    char at[32], small[512];
    own_mem char *large = NULL;
    snprintf(at, sizeof(at), "/proc/self/fd/%d", fd);
    ssize_t n = list_attributes(at, small, sizeof(small), &large);
    if (n < 0)
        return errno == ENOTSUP ? 0 : fail_os(e, "read the attributes of", path);
    const char *list = large ? large : small;
    for (ssize_t i = 0; i < n; i += (ssize_t)strlen(list + i) + 1) {
        int r = strncmp(list + i, "user.overlay.", 13) == 0 ? read_mark(at, path, list + i, ret, e) : 0;
        if (r < 0)
            return r;
    }
    return 0;
}

int leaf_look_fd(int fd, const char *path, bool marks, struct leaf *ret, struct pale_err *e)
{
    struct leaf l = {0};
    if (fstat(fd, &l.st) < 0)
        return fail_os(e, "look at", path);
    l.kind = kind_of(&l.st);
    int r = marks && (l.kind == LEAF_FILE || l.kind == LEAF_FOLDER) ? read_marks(fd, path, &l, e) : 0;
    if (r < 0)
        return r;
    *ret = l;
    return 0;
}

static int open_path(int root_fd, const char *path)
{
    return fd_open_beneath(root_fd, *path ? path : ".", O_PATH | O_NOFOLLOW, 0);
}

int leaf_look(int root_fd, const char *path, bool marks, struct leaf *ret, struct pale_err *e)
{
    own_fd fd = open_path(root_fd, path);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) {
        *ret = (struct leaf){.kind = LEAF_NONE};
        return 0;
    }
    return fd < 0 ? fail_os(e, "look at", path) : leaf_look_fd(fd, path, marks, ret, e);
}

int leaf_reopen(int path_fd, int flags)
{
    char at[32];
    snprintf(at, sizeof(at), "/proc/self/fd/%d", path_fd);
    /* By openat: open of musl says CLOEXEC a second time, in a call of its own. */
    return openat(AT_FDCWD, at, flags | O_CLOEXEC | O_NOCTTY | (weak_word("plain-open") ? 0 : O_NONBLOCK));
}

static int not_that(const char *path, const char *what, struct pale_err *e)
{
    char shown[SHOWN_MAX];
    return err_set(e, PALE_BUSY, "%s is no %s any more; it was changed meanwhile, so try again",
                   quote_into(shown, sizeof(shown), path, strlen(path)), what);
}

int leaf_open(int root_fd, const char *path, struct leaf *ret, int *ret_fd, struct pale_err *e)
{
    struct leaf l;
    own_fd at = open_path(root_fd, path);
    if (at < 0)
        return fail_os(e, "open", path);
    int r = leaf_look_fd(at, path, false, &l, e);
    if (r < 0)
        return r;
    if (l.kind != LEAF_FILE)
        return not_that(path, "file", e);
    int fd = leaf_reopen(at, O_RDONLY);
    if (fd < 0)
        return fail_os(e, "open", path);
    if (ret)
        *ret = l;
    *ret_fd = fd;
    return 0;
}

int leaf_open_folder(int root_fd, const char *path, int *ret_fd, struct pale_err *e)
{
    int fd = fd_open_beneath(root_fd, *path ? path : ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd < 0 && errno == ENOTDIR)
        return not_that(path, "folder", e);
    if (fd < 0)
        return fail_os(e, "open the folder", path);
    *ret_fd = fd;
    return 0;
}

int leaf_read_link(int root_fd, const char *path, struct buf *out, struct pale_err *e)
{
    char to[PATH_BYTES_MAX];
    own_fd at = open_path(root_fd, path);
    ssize_t n = at < 0 ? -1 : readlinkat(at, "", to, sizeof(to));
    if (at >= 0 && n < 0 && (errno == EINVAL || errno == ENOENT))
        return not_that(path, "symlink", e);
    if (n < 0)
        return fail_os(e, "read the symlink", path);
    buf_add(out, to, (size_t)n);
    return out->failed ? err_nomem(e) : 0;
}

static ssize_t read_at(int fd, void *p, size_t n, off_t from)
{
    size_t got = 0;
    while (got < n) {
        ssize_t r = pread(fd, (char *)p + got, n - got, from + (off_t)got);
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            return -1;
        if (r == 0)
            break;
        got += (size_t)r;
    }
    return (ssize_t)got;
}

/* Where bytes that are written down begin at or after this place; the file's end if there are none. What a file system cannot tell is
 * taken as written. */
static off_t next_data(int fd, off_t from)
{
    if (weak_word("holes"))
        return from;
    off_t was = lseek(fd, 0, SEEK_CUR), at = lseek(fd, from, SEEK_DATA);
    int os = errno;
    struct stat st;
    lseek(fd, was, SEEK_SET);
    errno = os;
    if (at < 0 && errno == ENXIO && fstat(fd, &st) == 0 && st.st_size > from)
        return st.st_size;
    return at < from ? from : at;
}

int leaf_same_bytes(int a_fd, int b_fd, bool *ret, struct pale_err *e)
{
    own_mem char *two = malloc(2 * CHUNK);
    if (!two)
        return err_nomem(e);
    for (off_t at = 0;; at += CHUNK) {
        /* A hole in both is the same, however large whoever made it says it is. */
        off_t a_next = next_data(a_fd, at), b_next = next_data(b_fd, at);
        at = a_next < b_next ? a_next : b_next;
        ssize_t a = read_at(a_fd, two, CHUNK, at), b = read_at(b_fd, two + CHUNK, CHUNK, at);
        if (a < 0 || b < 0)
            return err_os(e, "read a file that is compared");
        *ret = a == b && memcmp(two, two + CHUNK, (size_t)a) == 0;
        if (!*ret || a < CHUNK)
            return 0;
    }
}

int leaf_read(int fd, struct buf *out, struct pale_err *e)
{
    for (;;) {
        size_t left = out->max - out->len, want = left < CHUNK ? left + 1 : CHUNK;
        char probe;
        if (left > 0 && !buf_reserve(out, want < left ? want : left))
            return err_nomem(e);
        ssize_t n = left == 0 ? read_at(fd, &probe, 1, (off_t)out->len)
                              : read_at(fd, out->data + out->len, want < left ? want : left, (off_t)out->len);
        if (n < 0)
            return err_os(e, "read a file");
        if (n == 0)
            return 0;
        if (left == 0)
            return err_set(e, PALE_LIMIT, "longer than %zu bytes", out->max);
        out->len += (size_t)n;
    }
}

bool leaf_birth(int root_fd, const char *path, struct timespec *ret)
{
    struct statx x;
    own_fd at = open_path(root_fd, path);
    if (at < 0 || syscall(SYS_statx, at, "", AT_EMPTY_PATH, STATX_BTIME, &x) < 0 || !(x.stx_mask & STATX_BTIME))
        return false;
    *ret = (struct timespec){.tv_sec = x.stx_btime.tv_sec, .tv_nsec = x.stx_btime.tv_nsec};
    return true;
}

bool leaf_time_before(struct timespec a, struct timespec b)
{
    return a.tv_sec != b.tv_sec ? a.tv_sec < b.tv_sec : a.tv_nsec < b.tv_nsec;
}

bool leaf_is_unchanged(const struct leaf *a, const struct leaf *b)
{
    if (a->kind != b->kind || a->kind == LEAF_NONE)
        return a->kind == b->kind;
    return a->st.st_dev == b->st.st_dev && a->st.st_ino == b->st.st_ino && a->st.st_mode == b->st.st_mode &&
           (a->kind == LEAF_FOLDER || (a->st.st_size == b->st.st_size && a->st.st_mtim.tv_sec == b->st.st_mtim.tv_sec &&
                                       a->st.st_mtim.tv_nsec == b->st.st_mtim.tv_nsec));
}
