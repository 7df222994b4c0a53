/* SPDX-License-Identifier: Apache-2.0 */
/* Owns files that are written before they have a name. */
#include "cli/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OTHER_NAME ".%s.%d.new"

/* What is there must be a file, and meant to go. */
static int check_there(const struct outfile *o, const char *path, struct pale_err *e)
{
    struct stat st;
    if (fstatat(o->dir_fd, o->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : err_os(e, "look at %s", path);
    if (!S_ISREG(st.st_mode))
        return err_set(e, PALE_EXISTS, "%s is there and is no file; name another", path);
    return o->replaces ? 0 : err_set(e, PALE_EXISTS, "%s is there already; name another, or replace it with -f", path);
}

static int open_stream(struct outfile *o, struct pale_err *e)
{
    if (isatty(1))
        return err_set(e, PALE_BAD_INPUT, "standard output is a terminal; redirect it, or name a file with -o");
    o->fd = fcntl(1, F_DUPFD_CLOEXEC, 3);
    return o->fd < 0 ? err_os(e, "open standard output") : 0;
}

static int open_folder(struct outfile *o, const char *path, struct pale_err *e)
{
    char folder[PATH_BYTES_MAX];
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t n = slash ? (size_t)(slash - path) + 1 : 1;
    if (n >= sizeof(folder) || strlen(name) > FILE_NAME_MAX - sizeof("..1234567890.new") || !*name || strcmp(name, ".") == 0 ||
        strcmp(name, "..") == 0)
        return err_set(e, PALE_BAD_INPUT, "%.200s: it must end in the name of a file, not too long", path);
    memcpy(folder, slash ? path : ".", n);
    folder[n] = 0;
    memcpy(o->name, name, strlen(name) + 1);
    o->dir_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return o->dir_fd < 0 ? err_os(e, "open the folder %s", folder) : 0;
}

int outfile_open(struct outfile *o, const char *path, bool replaces, struct pale_err *e)
{
    o->replaces = replaces;
    if (strcmp(path, "-") == 0)
        return open_stream(o, e);
    int r = open_folder(o, path, e);
    if (r == 0)
        r = check_there(o, path, e);
    if (r < 0)
        return r;
    /* One without a name goes with us, however we go. */
    o->fd = openat(o->dir_fd, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
    if (o->fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT || errno == EINVAL)) {
        snprintf(o->other, sizeof(o->other), OTHER_NAME, o->name, (int)getpid());
        o->fd = openat(o->dir_fd, o->other, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    }
    return o->fd < 0 ? err_os(e, "make %s", path) : 0;
}

/* A further name for what was written. */
static int give_name(const struct outfile *o, const char *name)
{
    char at[32];
    if (o->other[0])
        return linkat(o->dir_fd, o->other, o->dir_fd, name, 0);
    snprintf(at, sizeof(at), "/proc/self/fd/%d", o->fd);
    return linkat(AT_FDCWD, at, o->dir_fd, name, AT_SYMLINK_FOLLOW);
}

/* In the place of another: only what has a name can take it. */
static int take_name(struct outfile *o)
{
    char other[sizeof(o->other)];
    snprintf(other, sizeof(other), OTHER_NAME, o->name, (int)getpid());
    if (!o->other[0] && give_name(o, other) < 0)
        return -1;
    memcpy(o->other, other, sizeof(other));
    if (renameat(o->dir_fd, o->other, o->dir_fd, o->name) < 0)
        return -1;
    o->other[0] = 0;
    return 0;
}

int outfile_keep(struct outfile *o, struct pale_err *e)
{
    if (o->dir_fd < 0)
        return 0;
    if (fsync(o->fd) < 0)
        return err_os(e, "write %s to the disk", o->name);
    if ((o->replaces ? take_name(o) : give_name(o, o->name)) < 0)
        return errno == EEXIST ? err_set(e, PALE_EXISTS, "%s has appeared meanwhile; name another", o->name)
                               : err_os(e, "give %s its name", o->name);
    return fsync(o->dir_fd) < 0 ? err_os(e, "write the folder of %s to the disk", o->name) : 0;
}

void outfile_close(struct outfile *o)
{
    if (o->other[0])
        (void)unlinkat(o->dir_fd, o->other, 0);
    o->other[0] = 0;
    own_close(&o->fd);
    own_close(&o->dir_fd);
}
