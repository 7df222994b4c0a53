/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the builtins: the table of names, and the small ones (read, write, list, make folders, remove, move). Trees are in
 * init/pack.c. */
#include "init/builtin.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/number.h"
#include "base/own.h"
#include "base/weak.h"
#include "init/pack.h"

static int complain(const char *what, const char *path)
{
    dprintf(2, "%s %s: %s\n", what, path, strerror(errno));
    return 1;
}

/* Opens for reading without being caught by a FIFO or a device that a box may have put there. */
static int open_plain(const char *path, struct stat *ret)
{
    if (weak_word("plain-open"))
        return open(path, O_RDONLY | O_CLOEXEC);
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    if (fstat(fd, ret) == 0 && S_ISREG(ret->st_mode))
        return fd;
    close(fd);
    errno = S_ISDIR(ret->st_mode) ? EISDIR : EINVAL;
    return -1;
}

static int copy_out(int from)
{
    static char block[65536];
    ssize_t n;
    while ((n = read(from, block, sizeof(block))) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 || !fd_write_full(1, block, (size_t)n))
            return -1;
    }
    return 0;
}

/* read PATH */
static int do_read(const struct msg_exec *m)
{
    struct stat st = {0};
    own_fd fd = open_plain(m->argv[1], &st);
    return fd < 0 || copy_out(fd) < 0 ? complain("read", m->argv[1]) : 0;
}

/* write PATH MODE: standard input becomes the file, whole or not at all. */
static int do_write(const struct msg_exec *m)
{
    static char block[65536];
    char tmp[PATH_BYTES_MAX];
    const char *path = m->argv[1];
    uint64_t mode = 0;
    if (!number_u64(m->argv[2], 07777, &mode))
        return errno = EINVAL, complain("write", path);
    const char *slash = strrchr(path, '/');
    int dir_len = slash ? (int)(slash - path) + 1 : 0;
    int n = snprintf(tmp, sizeof(tmp), "%.*s.pale-%d.new", dir_len, path, (int)getpid());
    if (n < 0 || (size_t)n >= sizeof(tmp))
        return errno = ENAMETOOLONG, complain("write", path);
    struct stat st;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return errno = S_ISDIR(st.st_mode) ? EISDIR : EINVAL, complain("write", path);
    own_fd fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return complain("write", path);
    ssize_t got;
    while ((got = read(0, block, sizeof(block))) != 0) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 || !fd_write_full(fd, block, (size_t)got))
            break;
    }
    if (got != 0 || fchmod(fd, (mode_t)mode) < 0 || rename(tmp, path) < 0) {
        int os = errno;
        unlink(tmp);
        errno = os;
        return complain("write", path);
    }
    return 0;
}

static char type_letter(mode_t mode)
{
    static const struct {
        mode_t type;
        char letter;
    } rows[] = {{S_IFREG, 'f'}, {S_IFDIR, 'd'}, {S_IFLNK, 'l'}, {S_IFIFO, 'p'}, {S_IFSOCK, 's'}, {S_IFCHR, 'c'}, {S_IFBLK, 'b'}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if ((mode & S_IFMT) == rows[i].type)
            return rows[i].letter;
    return '?';
}

/* One entry: "type mode size mtime name[\0target]\0\0"; the reader on the host takes it as hostile. */
static void print_entry(int dirfd, const char *name, const char *shown)
{
    struct stat st;
    char target[PATH_BYTES_MAX] = "";
    if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return;
    if (S_ISLNK(st.st_mode)) {
        ssize_t n = readlinkat(dirfd, name, target, sizeof(target) - 1);
        target[n > 0 ? n : 0] = 0;
    }
    printf("%c %o %lld %lld %s%c%s%c", type_letter(st.st_mode), (unsigned)(st.st_mode & 07777), (long long)st.st_size,
           (long long)st.st_mtime, shown, 0, target, 0);
}

/* list PATH: a folder's entries, or the one thing that is no folder. */
static int do_list(const struct msg_exec *m)
{
    static _Alignas(8) char block[32768];
    const char *path = m->argv[1];
    own_fd dir = open(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
    struct stat st;
    if (dir < 0 && errno == ENOTDIR && lstat(path, &st) == 0) {
        print_entry(AT_FDCWD, path, path);
        return fflush(stdout) ? 1 : 0;
    }
    if (dir < 0)
        return complain("list", path);
    long n;
    while ((n = fd_entries(dir, block, sizeof(block))) > 0)
        for (long at = 0; at < n;) {
            const struct dirent *d = (const void *)(block + at);
            at += d->d_reclen;
            if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0)
                print_entry(dir, d->d_name, d->d_name);
        }
    return n < 0 || fflush(stdout) ? complain("list", path) : 0;
}

/* stat PATH: one entry, the link itself and not what it points at. */
static int do_stat(const struct msg_exec *m)
{
    struct stat st;
    if (lstat(m->argv[1], &st) < 0)
        return complain("stat", m->argv[1]);
    print_entry(AT_FDCWD, m->argv[1], m->argv[1]);
    return fflush(stdout) ? 1 : 0;
}

static int do_mkdir(const struct msg_exec *m)
{
    return mkdir(m->argv[1], 0755) < 0 ? complain("make folder", m->argv[1]) : 0;
}

static const struct {
    const char *name;
    size_t argc;
    int (*run)(const struct msg_exec *m);
} builtins[] = {
    {"read", 2, do_read},   {"write", 3, do_write}, {"list", 2, do_list},   {"stat", 2, do_stat},
    {"mkdir", 2, do_mkdir}, {"pack", 2, pack_out},  {"unpack", 2, pack_in},
};

int builtin_run(const struct msg_exec *m)
{
    for (size_t i = 0; i < sizeof(builtins) / sizeof(builtins[0]); i++)
        if (strcmp(m->argv[0], builtins[i].name) == 0 && m->argc == builtins[i].argc)
            return builtins[i].run(m);
    dprintf(2, "no such file request: %s\n", m->argv[0]);
    return 125;
}
