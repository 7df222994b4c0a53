/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the ground on which an image is laid. No allocation. */
#include "init/plot.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/attributes.h"
#include "base/fd.h"
#include "base/own.h"

#define LOOK_EVERY_BYTES (64u << 20)
#define LOOK_EVERY_ENTRIES 1024u

int plot_open(struct plot *p, const char *folder, struct pale_err *e)
{
    *p = (struct plot){.root = -1, .here = -1, .file = -1, .marks = -1};
    p->root = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return p->root < 0 ? err_os(e, "open folder %s", folder) : 0;
}

static void forget_here(struct plot *p)
{
    own_close(&p->here);
}

int plot_close(struct plot *p, struct pale_err *e)
{
    forget_here(p);
    own_close(&p->marks);
    if (close(p->root) < 0)
        return err_os(e, "close the image");
    p->root = -1;
    return 0;
}

/* What a stranger brings must not fill the disk: the rest of the host needs some of it. */
static int look_at_room(struct plot *p, struct pale_err *e)
{
    struct statvfs v;
    p->since_look = 0;
    if (fstatvfs(p->root, &v) < 0)
        return err_os(e, "look at the room on the disk");
    if ((uint64_t)v.f_bavail * v.f_frsize < IMAGE_SPARE_BYTES)
        return err_set(e, PALE_LIMIT, "less than %u MiB are left on the disk of the images; make room there", IMAGE_SPARE_BYTES >> 20);
    if (v.f_files && v.f_favail < IMAGE_SPARE_INODES)
        return err_set(e, PALE_LIMIT, "fewer than %u files can still be made on the disk of the images; make room there",
                       IMAGE_SPARE_INODES);
    return 0;
}

/* --- the way --- */

/* One step down. With make, a folder that is not there is made. */
static int step_into(int at, const char *name, bool make)
{
    int fd = openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 || !make || errno != ENOENT || mkdirat(at, name, 0755) < 0)
        return fd;
    return openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* The folder at the first n bytes of a path, O_PATH. -1 with errno: ENOENT, ENOTDIR … */
static int walk(struct plot *p, const char *path, size_t n, bool make)
{
    char name[FILE_NAME_MAX + 1];
    int at = fcntl(p->root, F_DUPFD_CLOEXEC, 3);
    for (size_t i = 0; at >= 0 && i < n;) {
        const char *slash = memchr(path + i, '/', n - i);
        size_t len = slash ? (size_t)(slash - path) - i : n - i;
        memcpy(name, path + i, len);
        name[len] = 0;
        int next = step_into(at, name, make);
        int os = errno;
        close(at);
        errno = os;
        at = next;
        i += len + 1;
    }
    return at;
}

static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) : 0;
}

static const char *last_name(const char *path)
{
    size_t n = folder_length(path);
    return path + n + (n ? 1 : 0);
}

static int no_way(struct pale_err *e)
{
    if (errno == ENOTDIR || errno == ELOOP)
        return err_set(e, PALE_BAD_INPUT, "its path leads through something that is no folder (a symlink is not followed)");
    return err_os(e, "go to its folder");
}

/* Makes p->here the folder that an entry goes into. */
static int go_there(struct plot *p, const char *path, struct pale_err *e)
{
    size_t n = folder_length(path);
    if (++p->entries % LOOK_EVERY_ENTRIES == 0) {
        int r = look_at_room(p, e);
        if (r < 0)
            return r;
    }
    if (p->here >= 0 && strlen(p->here_path) == n && memcmp(p->here_path, path, n) == 0)
        return 0;
    forget_here(p);
    p->here = walk(p, path, n, true);
    if (p->here < 0)
        return no_way(e);
    memcpy(p->here_path, path, n);
    p->here_path[n] = 0;
    return 0;
}

/* Takes away what stands under a name, if anything does. */
static int take_away(const struct plot *p, int dir, const char *name, struct pale_err *e)
{
    if (p->strict)
        return err_set(e, PALE_BAD_INPUT, "it is there twice");
    if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
        return 0;
    return errno == EISDIR || errno == EPERM ? fd_remove_tree(dir, name, e) : err_os(e, "replace it");
}

/* --- entries --- */

int plot_folder(struct plot *p, const char *path, unsigned mode, struct pale_err *e)
{
    struct stat st;
    if (!*path)
        return 0;
    const char *name = last_name(path);
    int r = go_there(p, path, e);
    if (r < 0)
        return r;
    if (fstatat(p->here, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(st.st_mode) && (r = take_away(p, p->here, name, e)) < 0)
        return r;
    if (mkdirat(p->here, name, 0700) < 0 && errno != EEXIST)
        return err_os(e, "make the folder");
    return fchmodat(p->here, name, (mode & 0777) | 0700, 0) < 0 ? err_os(e, "set its mode") : 0;
}

/* Of what stands under a name, and not of what that leads to. A time that the file system cannot hold is nobody's trouble. */
static int set_time(const struct plot *p, const char *name, int64_t mtime, struct pale_err *e)
{
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = mtime}};
    if (utimensat(p->here, name, times, AT_SYMLINK_NOFOLLOW) < 0 && errno != EINVAL && errno != EOVERFLOW)
        return err_os(e, "set its time");
    return 0;
}

int plot_leave_folder(struct plot *p, const char *path, unsigned mode, int64_t mtime, struct pale_err *e)
{
    const char *name = last_name(path);
    int r = go_there(p, path, e);
    if (r < 0)
        return r;
    if (mkdirat(p->here, name, 0700) < 0 && errno != EEXIST)
        return err_os(e, "make the folder");
    own_fd fd = p->attributes_len ? openat(p->here, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    if (p->attributes_len && fd < 0)
        return err_os(e, "open the folder");
    if ((r = attributes_set(fd, p->attributes, p->attributes_len, e)) < 0)
        return r;
    /* The mode comes last: it may close the folder. */
    if ((r = set_time(p, name, mtime, e)) < 0)
        return r;
    return fchmodat(p->here, name, mode & 01777, 0) < 0 ? err_os(e, "set its mode") : 0;
}

int plot_link(struct plot *p, const char *path, const char *target, struct pale_err *e)
{
    const char *name = last_name(path);
    int r = go_there(p, path, e);
    if (r < 0 || symlinkat(target, p->here, name) == 0)
        return r;
    if (errno == EEXIST && (r = take_away(p, p->here, name, e)) < 0)
        return r;
    return symlinkat(target, p->here, name) < 0 ? err_os(e, "make the symlink") : 0;
}

int plot_dated_link(struct plot *p, const char *path, const char *target, int64_t mtime, struct pale_err *e)
{
    int r = plot_link(p, path, target, e);
    return r < 0 ? r : set_time(p, last_name(path), mtime, e);
}

int plot_begin_file(struct plot *p, const char *path, struct pale_err *e)
{
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    const char *name = last_name(path);
    int r = go_there(p, path, e);
    if (r < 0)
        return r;
    p->file = openat(p->here, name, flags, 0600);
    if (p->file < 0 && errno == EEXIST) {
        if ((r = take_away(p, p->here, name, e)) < 0)
            return r;
        p->file = openat(p->here, name, flags, 0600);
    }
    return p->file < 0 ? err_os(e, "make the file") : 0;
}

static bool is_zero(const uint8_t *p, size_t n)
{
    return n > 0 && p[0] == 0 && memcmp(p, p + 1, n - 1) == 0;
}

int plot_write(struct plot *p, const void *data, size_t n, struct pale_err *e)
{
    p->since_look += n;
    if (p->since_look >= LOOK_EVERY_BYTES) {
        int r = look_at_room(p, e);
        if (r < 0)
            return r;
    }
    p->dug = p->holes && is_zero(data, n) ? p->dug + n : 0;
    if (p->dug)
        return lseek(p->file, (off_t)n, SEEK_CUR) < 0 ? err_os(e, "make a hole in it") : 0;
    return fd_write_full(p->file, data, n) ? 0 : err_os(e, "write it");
}

int plot_end_file(struct plot *p, unsigned mode, int64_t mtime, struct pale_err *e)
{
    own_fd fd = take_fd(&p->file);
    off_t size = p->dug ? lseek(fd, 0, SEEK_CUR) : 0;
    p->dug = 0;
    if (size < 0 || (size > 0 && ftruncate(fd, size) < 0))
        return err_os(e, "make it as long as it is");
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = mtime}};
    int r = attributes_set(fd, p->attributes, p->attributes_len, e);
    if (r < 0)
        return r;
    if (fchmod(fd, mode & 0777) < 0)
        return err_os(e, "set its mode");
    /* A time that the file system cannot hold is nobody's trouble. */
    if (futimens(fd, times) < 0 && errno != EINVAL && errno != EOVERFLOW)
        return err_os(e, "set its time");
    return 0;
}

static int copy(struct plot *p, int from_dir, const char *from, const struct stat *st, const char *path, struct pale_err *e)
{
    static uint8_t piece[65536];
    own_fd in = openat(from_dir, from, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (in < 0)
        return err_os(e, "read what it links to");
    int r = plot_begin_file(p, path, e);
    for (ssize_t n; r == 0 && (n = read(in, piece, sizeof(piece))) != 0;)
        r = n < 0 ? err_os(e, "read what it links to") : plot_write(p, piece, (size_t)n, e);
    return r < 0 ? r : plot_end_file(p, st->st_mode, st->st_mtime, e);
}

int plot_hard_link(struct plot *p, const char *path, const char *target, struct pale_err *e)
{
    struct stat st;
    const char *name = last_name(path), *from = last_name(target);
    own_fd dir = walk(p, target, folder_length(target), false);
    if (dir < 0)
        return errno == ENOENT ? err_set(e, PALE_BAD_INPUT, "it is a hard link to something that is not there") : no_way(e);
    if (fstatat(dir, from, &st, AT_SYMLINK_NOFOLLOW) < 0 || (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode)))
        return err_set(e, PALE_BAD_INPUT, "it is a hard link to something that is not there, or no file");
    if (strcmp(path, target) == 0)
        return 0;
    int r = go_there(p, path, e);
    if (r < 0 || linkat(dir, from, p->here, name, 0) == 0)
        return r;
    if (errno == EEXIST) {
        if ((r = take_away(p, p->here, name, e)) < 0 || linkat(dir, from, p->here, name, 0) == 0)
            return r;
    }
    /* Some kernels let nobody under Landlock link from folder to folder. */
    if ((errno != EXDEV && errno != EPERM && errno != EACCES && errno != EMLINK) || !S_ISREG(st.st_mode))
        return err_os(e, "make the hard link");
    return copy(p, dir, from, &st, path, e);
}

/* --- what is hidden --- */

/* There may be no way to it: then there is nothing to hide. */
static bool is_nothing(int os)
{
    return os == ENOENT || os == ENOTDIR || os == ELOOP;
}

int plot_hide(struct plot *p, const char *path, struct pale_err *e)
{
    forget_here(p);
    p->here = walk(p, path, folder_length(path), false);
    if (p->here < 0)
        return is_nothing(errno) ? 0 : err_os(e, "go to its folder");
    int r = take_away(p, p->here, last_name(path), e);
    forget_here(p);
    return r;
}

int plot_empty(struct plot *p, const char *path, struct pale_err *e)
{
    static _Alignas(8) char entries[32768];
    own_fd folder = walk(p, path, strlen(path), false);
    own_fd dir = folder < 0 ? -1 : openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return is_nothing(errno) ? 0 : err_os(e, "open the folder");
    forget_here(p);
    for (bool more = true; more;) {
        long n;
        more = false;
        while ((n = fd_entries(dir, entries, sizeof(entries))) > 0)
            for (long at = 0; at < n;) {
                const struct dirent *d = (const void *)(entries + at);
                at += d->d_reclen;
                if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
                    continue;
                int r = take_away(p, dir, d->d_name, e);
                if (r < 0)
                    return r;
                more = true;
            }
        if (n < 0 || lseek(dir, 0, SEEK_SET) < 0)
            return err_os(e, "read the folder");
    }
    return 0;
}

int plot_mark(struct plot *p, const char *name, char what, const char *path, struct pale_err *e)
{
    char line[PATH_BYTES_MAX + 1];
    size_t n = strlen(path);
    if (p->marks < 0)
        p->marks = openat(p->root, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (p->marks < 0)
        return err_os(e, "begin the list of marks");
    line[0] = what;
    memcpy(line + 1, path, n + 1);
    return fd_write_full(p->marks, line, n + 2) ? 0 : err_os(e, "write down a mark");
}
