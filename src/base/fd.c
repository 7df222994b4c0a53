/* SPDX-License-Identifier: Apache-2.0 */
/* Owns reading, writing and safe opening of descriptors. */
#include "base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/weak.h"

ssize_t fd_read_full(int fd, void *p, size_t n)
{
    size_t got = 0;
    while (got < n) {
        ssize_t r = read(fd, (char *)p + got, n - got);
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

bool fd_write_full(int fd, const void *p, size_t n)
{
    while (n > 0) {
        ssize_t w = write(fd, p, n);
        if (w < 0 && errno == EINTR)
            continue;
        if (w < 0 && errno == EAGAIN) {
            /* Somebody else made this descriptor non-blocking (a shared terminal, often). */
            struct pollfd wait = {.fd = fd, .events = POLLOUT};
            poll(&wait, 1, -1);
            continue;
        }
        if (w < 0)
            return false;
        p = (const char *)p + w;
        n -= (size_t)w;
    }
    return true;
}

int fd_read_all(int fd, struct buf *out, struct pale_err *e)
{
    char chunk[4096];
    for (;;) {
        ssize_t r = read(fd, chunk, sizeof(chunk));
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            return err_os(e, "read");
        if (r == 0)
            return out->failed ? err_set(e, PALE_LIMIT, "longer than %zu bytes", out->max) : 0;
        buf_add(out, chunk, (size_t)r);
        if (out->failed)
            return err_set(e, PALE_LIMIT, "longer than %zu bytes", out->max);
    }
}

bool fd_set_nonblock(int fd, bool on)
{
    int fl = fcntl(fd, F_GETFL);
    return fl >= 0 && fcntl(fd, F_SETFL, on ? fl | O_NONBLOCK : fl & ~O_NONBLOCK) == 0;
}

long fd_entries(int fd, void *ret, size_t cap)
{
    return syscall(SYS_getdents64, fd, ret, cap);
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

int fd_has_entries(int dirfd, const char *name, struct pale_err *e)
{
    _Alignas(struct dirent) char block[1024];
    own_fd fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    long n = 0;
    if (fd < 0)
        return errno == ENOENT ? 0 : err_os(e, "open %s", name);
    while ((n = fd_entries(fd, block, sizeof(block))) > 0)
        for (long at = 0; at < n; at += ((const struct dirent *)(block + at))->d_reclen)
            if (!is_dots(((const struct dirent *)(block + at))->d_name))
                return 1;
    return n < 0 ? err_os(e, "list %s", name) : 0;
}

static int open_resolved(int dirfd, const char *rel, int flags, mode_t mode, unsigned long long resolve)
{
    struct open_how how = {
        .flags = (unsigned)(flags | O_CLOEXEC | (flags & O_PATH ? 0 : O_NOCTTY)),
        .mode = (flags & O_CREAT) ? mode : 0,
        .resolve = resolve | RESOLVE_NO_MAGICLINKS,
    };
    for (int tries = 0;; tries++) {
        long fd = syscall(SYS_openat2, dirfd, rel, &how, sizeof(how));
        /* The kernel answers EAGAIN when a rename raced with a ".." step; a box could keep that up for ever. */
        if (fd >= 0 || (errno != EAGAIN && errno != EINTR) || tries > 16)
            return (int)fd;
    }
}

int fd_open_beneath(int dirfd, const char *rel, int flags, mode_t mode)
{
    if (weak_word("beneath"))
        return open_resolved(dirfd, rel, flags & O_DIRECTORY ? flags & ~O_NOFOLLOW : flags, mode, 0);
    return open_resolved(dirfd, rel, flags, mode, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
}

int fd_open_real_dir(const char *path)
{
    return open_resolved(AT_FDCWD, path, O_PATH | O_DIRECTORY, 0, RESOLVE_NO_SYMLINKS);
}

static bool is_on_one(int fd, const struct fd_after *a)
{
    struct stat first, other;
    bool one = fstat(fd, &first) == 0;
    for (size_t i = 0; one && i < a->count; i++)
        one = fstat(a->fds[i], &other) == 0 && other.st_dev == first.st_dev;
    return one;
}

/* Every call has a disk empty its cache, also if there was nothing to write: one for all is cheaper where it may be. */
static bool sync_with(int fd, const struct fd_after *a)
{
    if (a->is_calm && a->count && is_on_one(fd, a))
        return syncfs(fd) == 0;
    /* What has grown and is not on its way when a journal commits takes another commit. Folders have nothing to send off. */
    for (size_t i = 0; i < a->count; i++)
        (void)!sync_file_range(a->fds[i], 0, 0, SYNC_FILE_RANGE_WRITE);
    bool done = fsync(fd) == 0;
    for (size_t i = 0; done && i < a->count; i++)
        done = fsync(a->fds[i]) == 0;
    return done;
}

static int replace(int dirfd, const char *name, const void *p, size_t n, mode_t mode, const struct fd_after *after, struct pale_err *e)
{
    char tmp[300];
    snprintf(tmp, sizeof(tmp), ".%s.%d.new", name, (int)getpid());
    own_fd fd = openat(dirfd, tmp, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0)
        return err_os(e, "create %s", tmp);
    if (!fd_write_full(fd, p, n) || (after && !sync_with(fd, after)) || renameat(dirfd, tmp, dirfd, name) < 0) {
        int r = err_os(e, "write %s", name);
        unlinkat(dirfd, tmp, 0);
        return r;
    }
    return 0;
}

int fd_replace_file(int dirfd, const char *name, const void *p, size_t n, mode_t mode, bool durable, struct pale_err *e)
{
    static const struct fd_after nothing;
    return replace(dirfd, name, p, n, mode, durable ? &nothing : NULL, e);
}

int fd_replace_file_after(int dirfd, const char *name, const void *p, size_t n, const struct fd_after *after, struct pale_err *e)
{
    return replace(dirfd, name, p, n, 0600, after, e);
}

int fd_write_new(int dirfd, const char *name, const void *p, size_t n, mode_t mode, bool durable, struct pale_err *e)
{
    char from[300];
    own_fd fd = openat(dirfd, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
    bool named = fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL);
    snprintf(from, sizeof(from), named ? ".%s.new" : "/proc/self/fd/%.0s%d", name, fd);
    if (named)
        fd = openat(dirfd, from, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, mode);
    int r = 0;
    if (fd < 0 || !fd_write_full(fd, p, n) || (durable && fsync(fd) < 0) ||
        linkat(named ? dirfd : AT_FDCWD, from, dirfd, name, named ? 0 : AT_SYMLINK_FOLLOW) < 0)
        r = errno == EEXIST ? err_set(e, PALE_EXISTS, "%s is there already", name) : err_os(e, "write %s", name);
    if (named && fd >= 0)
        unlinkat(dirfd, from, 0);
    return r;
}

/* Makes a folder its owner closed readable again: by what was opened, not by a name that may be a link by then. */
static bool open_up(int dirfd, const char *name)
{
    char path[32];
    own_fd at = openat(dirfd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", at);
    return at >= 0 && chmod(path, 0700) == 0;
}

/* What a box made has any depth, and we have few descriptors: what lies deeper than this is moved up to the top first. */
#define REMOVE_DEPTH 32
#define REMOVE_BLOCK 8192
#define REMOVE_CONTESTS 100 /* rounds that found a folder full which was empty */

struct removal {
    int top_fd;
    unsigned moved; /* up to the top, in all: also the next name there */
};

int fd_open_own(int dirfd, const char *name)
{
    int sub = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (sub < 0 && errno == EACCES && open_up(dirfd, name))
        sub = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (sub >= 0)
        (void)fchmod(sub, 0700);
    return sub;
}

static bool move_up(struct removal *m, int fd, const char *name)
{
    char to[32];
    do {
        snprintf(to, sizeof(to), "deep-%u", m->moved++);
        if (renameat(fd, name, m->top_fd, to) == 0)
            return true;
    } while (errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR);
    return false;
}

static int empty_dir(struct removal *m, int fd, int depth, struct pale_err *e);

/* Somebody else removes the same: what is gone is as it should be. */
static int unless_gone(struct pale_err *e, const char *what, const char *name)
{
    return errno == ENOENT ? 0 : err_os(e, "%s %s", what, name);
}

/* What would not go as a file, for the reason in errno. */
static int remove_dir(struct removal *m, int fd, const char *name, int depth, struct pale_err *e)
{
    int why = errno;
    own_fd sub = fd_open_own(fd, name);
    if (sub < 0) {
        errno = errno == ENOTDIR || errno == ELOOP ? why : errno;
        return unless_gone(e, "remove", name);
    }
    if (depth == REMOVE_DEPTH)
        return move_up(m, fd, name) ? 0 : unless_gone(e, "move up", name);
    int r = empty_dir(m, sub, depth + 1, e);
    return r == 0 && unlinkat(fd, name, AT_REMOVEDIR) < 0 ? unless_gone(e, "remove folder", name) : r;
}

/* Depth first, by descriptors and single names, so that no link is ever followed. The entries stand on the stack: pale-init, which
 * uses this too, allocates nothing, and the depth is bounded. */
static int empty_dir(struct removal *m, int fd, int depth, struct pale_err *e)
{
    _Alignas(8) char block[REMOVE_BLOCK];
    long n;
    int r = 0;
    lseek(fd, 0, SEEK_SET); /* it may have been read before */
    while (r == 0 && (n = fd_entries(fd, block, sizeof(block))) != 0) {
        if (n < 0)
            return unless_gone(e, "read", "a folder");
        for (long at = 0; r == 0 && at < n;) {
            const struct dirent *en = (const void *)(block + at);
            at += en->d_reclen;
            if (strcmp(en->d_name, ".") != 0 && strcmp(en->d_name, "..") != 0 && unlinkat(fd, en->d_name, 0) < 0 && errno != ENOENT)
                r = remove_dir(m, fd, en->d_name, depth, e);
        }
    }
    return r;
}

int fd_empty_tree(int fd, struct pale_err *e)
{
    struct removal m = {.top_fd = fd};
    unsigned before;
    int r;
    do {
        before = m.moved;
        r = empty_dir(&m, fd, 0, e);
    } while (r == 0 && m.moved != before);
    return r;
}

int fd_remove_tree(int dirfd, const char *name, struct pale_err *e)
{
    own_fd fd = fd_open_own(dirfd, name);
    if (fd < 0)
        return errno == ENOENT ? 0 : err_os(e, "open %s", name);
    for (unsigned contested = 0;;) {
        int r = fd_empty_tree(fd, e);
        if (r < 0)
            return r;
        if (unlinkat(dirfd, name, AT_REMOVEDIR) == 0)
            return 0;
        /* Somebody else, who removes it too, may have moved something up. */
        if (errno != ENOTEMPTY || ++contested == REMOVE_CONTESTS)
            return unless_gone(e, "remove folder", name);
    }
}
