/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the builtins: the table of names, and those that show (read, open, list, stat). Others are in init/draft.c (write),
 * init/names.c, init/watch.c, init/pack.c and in files of their own name. */
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
#include "init/draft.h"
#include "init/edit.h"
#include "init/glob.h"
#include "init/grep.h"
#include "init/layer.h"
#include "init/lines.h"
#include "init/names.h"
#include "init/pack.h"
#include "init/patch.h"
#include "init/watch.h"
#include "wire/fileline.h"

int builtin_fail(const struct pale_err *e)
{
    bool full = e->os == ENOSPC || e->os == EDQUOT;
    dprintf(2, "%s%s\n", e->text, full ? "; the box has no room left: remove files, or raise limits.disk" : "");
    return file_status(e);
}

int builtin_fail_os(const char *what, const char *path)
{
    struct pale_err e;
    /* A folder of the host's that root's boxes see through a map of one id. */
    if (errno == EOVERFLOW)
        err_set(&e, PALE_DENIED, "%s %.400s: nobody but the box's user can own files there", what, path);
    else
        err_os(&e, "%s %.400s", what, path);
    return builtin_fail(&e);
}

int builtin_bad_words(const struct msg_exec *m)
{
    struct pale_err e;
    err_set(&e, PALE_BAD_INPUT, "%s: words that make no sense", m->argv[0]);
    return builtin_fail(&e);
}

/* --- bytes of a file --- */

int builtin_open_plain(const char *path, struct stat *ret)
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

struct range {
    uint64_t offset, length; /* UINT64_MAX: to the end */
};

static bool take_range(const struct msg_exec *m, struct range *ret)
{
    *ret = (struct range){.length = UINT64_MAX};
    if (m->argc == 2)
        return true;
    return m->argc == 4 && number_u64(m->argv[2], INT64_MAX, &ret->offset) &&
           (strcmp(m->argv[3], "-") == 0 || number_u64(m->argv[3], INT64_MAX, &ret->length));
}

/* Sends what there is of a range, and says how much that was. */
static int copy_out(int from, const struct range *r, uint64_t *ret_sent)
{
    static char block[65536];
    if (r->offset && lseek(from, (off_t)r->offset, SEEK_SET) < 0)
        return -1;
    for (*ret_sent = 0; *ret_sent < r->length;) {
        uint64_t left = r->length - *ret_sent;
        ssize_t n = read(from, block, left < sizeof(block) ? (size_t)left : sizeof(block));
        if (n < 0 && errno == EINTR)
            continue;
        if (n == 0)
            break;
        if (n < 0 || !fd_write_full(1, block, (size_t)n))
            return -1;
        *ret_sent += (uint64_t)n;
    }
    return 0;
}

static int do_read(const struct msg_exec *m)
{
    struct stat st = {0};
    struct range r;
    uint64_t sent;
    if (!take_range(m, &r))
        return builtin_bad_words(m);
    own_fd fd = builtin_open_plain(m->argv[1], &st);
    return fd < 0 || copy_out(fd, &r, &sent) < 0 ? builtin_fail_os("read", m->argv[1]) : 0;
}

/* --- entries --- */

char builtin_type_letter(mode_t mode)
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

/* One per process: a builtin does one thing and ends. */
static char out[65536];
static size_t out_len;

static bool flush(void)
{
    size_t n = out_len;
    out_len = 0;
    return fd_write_full(1, out, n);
}

static bool put_entry(const struct stat *st, const char *name, const char *target)
{
    struct file_entry en = {.type = builtin_type_letter(st->st_mode),
                            .mode = st->st_mode & 07777,
                            .size = st->st_size > 0 ? (uint64_t)st->st_size : 0,
                            .inode = st->st_ino,
                            .mtime = st->st_mtim.tv_sec,
                            .mtime_ns = (uint32_t)st->st_mtim.tv_nsec,
                            .name = name,
                            .target = target};
    if (sizeof(out) - out_len < FILE_ENTRY_MAX && !flush())
        return false;
    out_len += file_entry_write(&en, out + out_len);
    return true;
}

/* What stands at a name now, shown as another; nothing if it is gone. */
static bool put_named(int dirfd, const char *name, const char *shown)
{
    struct stat st;
    char target[PATH_BYTES_MAX] = "";
    if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return true;
    if (S_ISLNK(st.st_mode)) {
        ssize_t n = readlinkat(dirfd, name, target, sizeof(target) - 1);
        target[n > 0 ? n : 0] = 0;
    }
    return put_entry(&st, shown, target);
}

/* The entry is that of the descriptor the bytes come from, so both are of one file whatever its name stands for meanwhile. */
static int do_open(const struct msg_exec *m)
{
    struct stat st = {0};
    struct range r;
    struct pale_err e;
    uint64_t sent;
    if (!take_range(m, &r))
        return builtin_bad_words(m);
    own_fd fd = builtin_open_plain(m->argv[1], &st);
    if (fd < 0)
        return builtin_fail_os("open", m->argv[1]);
    uint64_t size = st.st_size > 0 ? (uint64_t)st.st_size : 0, there = r.offset < size ? size - r.offset : 0;
    if (size > 0 && r.length > there)
        r.length = there;
    if (!put_entry(&st, "", "") || !flush() || copy_out(fd, &r, &sent) < 0)
        return builtin_fail_os("read", m->argv[1]);
    if (size > 0 && sent < r.length)
        return err_set(&e, PALE_BUSY, "read %.400s: it became shorter meanwhile", m->argv[1]), builtin_fail(&e);
    return 0;
}

static int do_list(const struct msg_exec *m)
{
    static _Alignas(8) char block[32768];
    const char *path = m->argv[1];
    own_fd dir = open(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
    struct stat st;
    if (dir < 0 && errno == ENOTDIR && lstat(path, &st) == 0)
        return put_named(AT_FDCWD, path, "") && flush() ? 0 : builtin_fail_os("list", path);
    if (dir < 0)
        return builtin_fail_os("list", path);
    long n;
    while ((n = fd_entries(dir, block, sizeof(block))) > 0)
        for (long at = 0; at < n;) {
            const struct dirent *d = (const void *)(block + at);
            at += d->d_reclen;
            if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0 && !put_named(dir, d->d_name, d->d_name))
                return builtin_fail_os("list", path);
        }
    return n < 0 || !flush() ? builtin_fail_os("list", path) : 0;
}

static int do_stat(const struct msg_exec *m)
{
    struct stat st;
    bool follow = m->argc == 3;
    if ((follow ? stat(m->argv[1], &st) : lstat(m->argv[1], &st)) < 0)
        return builtin_fail_os("stat", m->argv[1]);
    bool good = follow ? put_entry(&st, "", "") : put_named(AT_FDCWD, m->argv[1], "");
    return good && flush() ? 0 : builtin_fail_os("stat", m->argv[1]);
}

static const struct {
    const char *name;
    size_t min, max;  /* words, with the name */
    const char *last; /* what the last word is if there are most; NULL: the function reads it */
    int (*run)(const struct msg_exec *m);
} builtins[] = {
    {"read", 2, 4, NULL, do_read},     {"open", 4, 4, NULL, do_open},          {"write", 4, 4, NULL, draft_write},
    {"list", 2, 2, NULL, do_list},     {"stat", 2, 3, "follow", do_stat},      {"mkdir", 2, 3, "parents", names_mkdir},
    {"move", 3, 4, "new", names_move}, {"remove", 2, 3, "tree", names_remove}, {"watch", 2, 3, "tree", watch_run},
    {"pack", 2, 2, NULL, pack_out},    {"unpack", 2, 2, NULL, pack_in},        {"lines", 6, 6, NULL, lines_run},
    {"edit", 3, 3, NULL, edit_run},    {"glob", 5, 5, NULL, glob_run},         {"grep", 9, 9, NULL, grep_run},
    {"patch", 3, 3, NULL, patch_run},  {"layer", 3, 3, NULL, layer_run},
};

int builtin_run(const struct msg_exec *m)
{
    for (size_t i = 0; i < sizeof(builtins) / sizeof(builtins[0]); i++) {
        if (strcmp(m->argv[0], builtins[i].name) != 0 || m->argc < builtins[i].min || m->argc > builtins[i].max)
            continue;
        bool reads = !builtins[i].last || m->argc < builtins[i].max || strcmp(m->argv[m->argc - 1], builtins[i].last) == 0;
        return reads ? builtins[i].run(m) : builtin_bad_words(m);
    }
    dprintf(2, "no such file request: %s\n", m->argv[0]);
    return 125;
}
