/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the copying of host folders. */
#include "image/hostcopy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/own.h"

#define DEPTH_MAX 128
#define OPEN_TO_ALL (S_IROTH | S_IXOTH)

struct level {
    int from, to;
    DIR *names;
    size_t path_len;
};

struct walk {
    struct hostcopy *h;
    struct level stack[DEPTH_MAX];
    int depth; /* -1: none */
    char path[PATH_BYTES_MAX];
    struct pale_err *e;
};

bool hostcopy_can_share(int to_fd, const char *host_file)
{
    own_fd from = open(host_file, O_RDONLY | O_CLOEXEC);
    own_fd to = openat(to_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    return from >= 0 && to >= 0 && ioctl(to, FICLONE, from) == 0;
}

static int copy_bytes(struct walk *w, int from, int to)
{
    static char piece[128u << 10];
    if (ioctl(to, FICLONE, from) == 0)
        return 0;
    w->h->shares = false;
    for (;;) {
        ssize_t n = read(from, piece, sizeof(piece));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_os(w->e, "read %s", w->path);
        if (n == 0)
            return 0;
        if (!fd_write_full(to, piece, (size_t)n))
            return err_os(w->e, "write %s of the image", w->path);
        if (w->h->stop && *w->h->stop)
            return err_set(w->e, PALE_GONE, "interrupted");
    }
}

static int take_file(struct walk *w, int from_dir, int to_dir, const char *name, const struct stat *st)
{
    w->h->files++;
    w->h->bytes += (uint64_t)st->st_size;
    if (w->h->bytes > IMAGE_BYTES_MAX)
        return err_set(w->e, PALE_LIMIT, "an image has at most %llu bytes", IMAGE_BYTES_MAX);
    own_fd from = openat(from_dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (from < 0 && errno != EACCES && errno != EPERM)
        return err_os(w->e, "open %s", w->path);
    /* What everybody may not read is not for boxes, whoever builds the image. */
    if (from < 0 || !(st->st_mode & S_IROTH)) {
        left_add(w->h->left, LEFT_UNREADABLE, w->path + 1);
        return 0;
    }
    if (st->st_mode & 07000)
        left_add(w->h->left, LEFT_SET_BITS, w->path + 1);
    if (w->h->only_counts)
        return 0;
    own_fd to = openat(to_dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (to < 0)
        return err_os(w->e, "make %s of the image", w->path);
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, st->st_mtim};
    int r = copy_bytes(w, from, to);
    if (r == 0 && (fchmod(to, st->st_mode & 0777) < 0 || futimens(to, times) < 0))
        r = err_os(w->e, "finish %s of the image", w->path);
    return r;
}

static int take_link(struct walk *w, int from_dir, int to_dir, const char *name)
{
    char target[PATH_BYTES_MAX];
    ssize_t n = readlinkat(from_dir, name, target, sizeof(target) - 1);
    if (n < 0)
        return err_os(w->e, "read %s", w->path);
    target[n] = 0;
    if (w->h->only_counts || symlinkat(target, to_dir, name) == 0)
        return 0;
    return err_os(w->e, "make %s of the image", w->path);
}

/* Goes into a folder of the host's and its image. */
static int enter(struct walk *w, int from_dir, int to_dir, const char *name, const struct stat *st)
{
    if (w->depth + 1 == DEPTH_MAX)
        return err_set(w->e, PALE_LIMIT, "%s lies too deep", w->path);
    own_fd from = openat(from_dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (from < 0 && errno != EACCES && errno != EPERM)
        return err_os(w->e, "open %s", w->path);
    if (from < 0 || (st->st_mode & OPEN_TO_ALL) != OPEN_TO_ALL) {
        left_add(w->h->left, LEFT_UNREADABLE, w->path + 1);
        return 0;
    }
    own_fd to = -1;
    if (!w->h->only_counts) {
        if (mkdirat(to_dir, name, 0700) < 0 && errno != EEXIST)
            return err_os(w->e, "make %s of the image", w->path);
        to = openat(to_dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (to < 0 || fchmod(to, (st->st_mode & 0777) | 0700) < 0)
            return err_os(w->e, "open %s of the image", w->path);
    }
    int copy = fcntl(from, F_DUPFD_CLOEXEC, 3);
    DIR *names = copy < 0 ? NULL : fdopendir(copy);
    if (!names) {
        own_close(&copy);
        return err_os(w->e, "read %s", w->path);
    }
    w->stack[++w->depth] = (struct level){take_fd(&from), take_fd(&to), names, strlen(w->path)};
    return 0;
}

static void leave(struct walk *w)
{
    struct level *l = &w->stack[w->depth--];
    closedir(l->names);
    own_close(&l->from);
    own_close(&l->to);
}

static int take_any(struct walk *w, int from_dir, int to_dir, const char *name)
{
    struct stat st;
    if (fstatat(from_dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : err_os(w->e, "look at %s", w->path);
    if (S_ISDIR(st.st_mode))
        return enter(w, from_dir, to_dir, name, &st);
    if (S_ISLNK(st.st_mode))
        return take_link(w, from_dir, to_dir, name);
    if (S_ISREG(st.st_mode))
        return take_file(w, from_dir, to_dir, name, &st);
    left_add(w->h->left, S_ISFIFO(st.st_mode) ? LEFT_FIFO : S_ISSOCK(st.st_mode) ? LEFT_SOCKET : LEFT_DEVICE, w->path + 1);
    return 0;
}

static int take_next(struct walk *w)
{
    struct level *l = &w->stack[w->depth];
    errno = 0;
    const struct dirent *en = readdir(l->names);
    w->path[l->path_len] = 0;
    if (!en && errno)
        return err_os(w->e, "read %s", w->path);
    if (!en) {
        leave(w);
        return 0;
    }
    if (strcmp(en->d_name, ".") == 0 || strcmp(en->d_name, "..") == 0)
        return 0;
    size_t n = strlen(en->d_name);
    if (l->path_len + n + 2 > sizeof(w->path))
        return err_set(w->e, PALE_LIMIT, "%s has a path in it that is too long", w->path);
    snprintf(w->path + l->path_len, sizeof(w->path) - l->path_len, "/%s", en->d_name);
    if (w->h->stop && *w->h->stop)
        return err_set(w->e, PALE_GONE, "interrupted");
    if (w->h->progress)
        w->h->progress(w->h->progress_arg, w->h->files, w->h->bytes);
    return take_any(w, l->from, l->to, en->d_name);
}

/* The folder around a path, in the image: made where it is missing. Such paths are ours, and short. */
static int around(struct walk *w, const char *path, int *ret_fd)
{
    own_fd at = openat(w->h->to_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const char *from = path + 1, *slash;
    for (; at >= 0 && (slash = strchr(from, '/')); from = slash + 1) {
        char name[FILE_NAME_MAX + 1];
        snprintf(name, sizeof(name), "%.*s", (int)(slash - from), from);
        if (mkdirat(at, name, 0755) < 0 && errno != EEXIST)
            break;
        int next = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        own_close(&at);
        at = next;
    }
    if (at < 0 || strchr(from, '/'))
        return err_os(w->e, "make the folders around %s of the image", path);
    *ret_fd = take_fd(&at);
    return 0;
}

int hostcopy_take(struct hostcopy *h, const char *path, struct pale_err *e)
{
    static struct walk w;
    char parent[PATH_BYTES_MAX];
    const char *slash = strrchr(path, '/');
    w = (struct walk){.h = h, .depth = -1, .e = e};
    snprintf(parent, sizeof(parent), "%.*s/", (int)(slash - path), path);
    snprintf(w.path, sizeof(w.path), "%s", path);
    own_fd from = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC), to = -1;
    if (from < 0)
        return errno == ENOENT ? 0 : err_os(e, "open %s", parent);
    int r = h->only_counts ? 0 : around(&w, path, &to);
    if (r == 0)
        r = take_any(&w, from, to, slash + 1);
    while (r == 0 && w.depth >= 0)
        r = take_next(&w);
    while (w.depth >= 0)
        leave(&w);
    return r;
}
