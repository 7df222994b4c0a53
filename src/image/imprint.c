/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the walk over an image's tree. What is written and compared line by line is in image/inventory.c. */
#include "image/imprint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/quote.h"
#include "image/inventory.h"

#define PIECE (128u << 10)
#define PROGRESS_ENTRIES 256u
#define ATTRIBUTES_MAX 65536u /* the kernel's own limit on a list of names */

/* A folder being walked: its names, sorted, and how far we are. */
struct level {
    int fd;
    char *names;
    const char **sorted;
    size_t count, next, path_len;
};

struct walk {
    struct imprint *i;
    struct inventory out;
    struct level stack[IMPRINT_DEPTH_MAX];
    int depth; /* of the folder we are in; -1: none */
    char path[PATH_BYTES_MAX];
    uint64_t entries;
    uint8_t piece[PIECE];
    struct pale_err *e;
};

void imprint_init(struct imprint *i, int root_fd)
{
    *i = (struct imprint){.root_fd = root_fd, .inventory_fd = -1, .expected_fd = -1, .preface = ""};
}

static int about_path(struct walk *w, const char *what)
{
    char shown[256];
    int os = errno;
    quote_into(shown, sizeof(shown), w->path, strlen(w->path));
    errno = os;
    return err_os(w->e, "%s %s of the image", what, shown);
}

static int refuse_path(struct walk *w, enum pale_code code, const char *why)
{
    char shown[256];
    return err_set(w->e, code, "%s of the image: %s", quote_into(shown, sizeof(shown), w->path, strlen(w->path)), why);
}

/* --- mending --- */

/* By the descriptor's own name, since one of O_PATH cannot be used and no symlink must be followed. */
static int set_mode(struct walk *w, int path_fd, mode_t mode)
{
    char name[40];
    snprintf(name, sizeof(name), "/proc/self/fd/%d", path_fd);
    return chmod(name, mode) < 0 ? about_path(w, "set the mode of") : 0;
}

/* What an image's owner must be able to do with every entry. */
static mode_t mended(mode_t mode)
{
    return (mode & 0777) | (S_ISDIR(mode) ? 0700 : 0400);
}

static int mend_mode(struct walk *w, int path_fd, struct stat *st)
{
    mode_t wanted = mended(st->st_mode);
    if (!w->i->mend || (st->st_mode & 07777) == wanted)
        return 0;
    if (st->st_mode & 07000)
        left_add(&w->i->left, LEFT_SET_BITS, w->path);
    if ((st->st_mode & 0777) != wanted)
        left_add(&w->i->left, LEFT_MODE, w->path);
    st->st_mode = (st->st_mode & S_IFMT) | wanted;
    return set_mode(w, path_fd, wanted);
}

/* Labels of the host's own security module are its business; everything else could mean something to whoever mounts the image. */
static bool is_hosts(const char *attribute)
{
    return strcmp(attribute, "security.selinux") == 0 || strncmp(attribute, "security.SMACK64", 16) == 0 ||
           strcmp(attribute, "security.ima") == 0 || strcmp(attribute, "security.evm") == 0;
}

static int mend_attributes(struct walk *w, int fd)
{
    static char names[ATTRIBUTES_MAX];
    ssize_t n = flistxattr(fd, names, sizeof(names));
    bool found = false;
    if (n < 0)
        return errno == ENOTSUP ? 0 : about_path(w, "look at the attributes of");
    for (ssize_t at = 0; at < n; at += (ssize_t)strlen(names + at) + 1) {
        if (is_hosts(names + at))
            continue;
        if (!w->i->mend)
            return refuse_path(w, PALE_CORRUPT, "it has extended attributes, and had none when it was built");
        if (fremovexattr(fd, names + at) < 0)
            return about_path(w, "take the attributes of");
        found = true;
    }
    if (found)
        left_add(&w->i->left, LEFT_ATTRIBUTES, w->path);
    return 0;
}

/* What is no file, folder or symlink. */
static int special(struct walk *w, int dir, const char *name, const struct stat *st)
{
    enum left_kind k = S_ISFIFO(st->st_mode) ? LEFT_FIFO : S_ISSOCK(st->st_mode) ? LEFT_SOCKET : LEFT_DEVICE;
    if (!w->i->mend)
        return refuse_path(w, PALE_CORRUPT, "it is no file, folder or symlink, which no image has");
    left_add(&w->i->left, k, w->path);
    return unlinkat(dir, name, 0) < 0 ? about_path(w, "remove") : 0;
}

/* --- entries --- */

static int digest_file(struct walk *w, int fd, struct inventory_line *line)
{
    struct sha256 h;
    uint8_t d[SHA256_BYTES];
    ssize_t n;
    line->size = 0;
    sha256_init(&h);
    while ((n = read(fd, w->piece, PIECE)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return about_path(w, "read");
        sha256_add(&h, w->piece, (size_t)n);
        line->size += (uint64_t)n;
        w->i->bytes += (uint64_t)n;
        if (w->i->stop && *w->i->stop)
            return err_set(w->e, PALE_GONE, "interrupted");
        if (w->i->bytes > IMAGE_BYTES_MAX)
            return err_set(w->e, PALE_LIMIT, "an image has at most %llu bytes", IMAGE_BYTES_MAX);
    }
    sha256_final(&h, d);
    sha256_to_hex(d, line->content);
    return 0;
}

static int take_file(struct walk *w, int dir, const char *name, const struct stat *seen)
{
    struct stat st;
    struct inventory_line line = {.kind = 'f', .path = w->path};
    own_fd path_fd = fd_open_beneath(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
    if (path_fd < 0 || fstat(path_fd, &st) < 0)
        return about_path(w, "open");
    if (!S_ISREG(st.st_mode) || st.st_ino != seen->st_ino)
        return refuse_path(w, PALE_BUSY, "it was replaced while it was read");
    int r = mend_mode(w, path_fd, &st);
    if (r < 0)
        return r;
    own_fd fd = fd_open_beneath(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
    if (fd < 0 || fstat(fd, &st) < 0)
        return about_path(w, "open");
    if (!S_ISREG(st.st_mode))
        return refuse_path(w, PALE_BUSY, "it was replaced while it was read");
    line.mode = st.st_mode & 07777;
    r = mend_attributes(w, fd);
    if (r == 0)
        r = digest_file(w, fd, &line);
    w->i->files++;
    return r < 0 ? r : inventory_put(&w->out, &line, w->e);
}

static int take_link(struct walk *w, int dir, const char *name)
{
    char target[PATH_BYTES_MAX];
    struct inventory_line line = {.kind = 'l', .path = w->path, .target = target};
    ssize_t n = readlinkat(dir, name, target, sizeof(target) - 1);
    if (n < 0)
        return about_path(w, "read the symlink");
    target[n] = 0;
    w->i->links++;
    return inventory_put(&w->out, &line, w->e);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* All names of a folder. */
static int read_names(struct walk *w, struct level *l)
{
    _Alignas(8) char block[16384];
    own_buf all = {0};
    long n;
    buf_init(&all, IMAGE_FOLDER_BYTES_MAX);
    while ((n = fd_entries(l->fd, block, sizeof(block))) > 0)
        for (long at = 0; at < n;) {
            const struct dirent *d = (const void *)(block + at);
            at += d->d_reclen;
            if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
                continue;
            buf_add(&all, d->d_name, strlen(d->d_name) + 1);
            l->count++;
        }
    if (n < 0)
        return about_path(w, "read the folder");
    if (all.failed)
        return refuse_path(w, PALE_LIMIT, "its names are longer than 64 MiB together");
    l->sorted = calloc(l->count + 1, sizeof(*l->sorted));
    if (!l->sorted)
        return err_nomem(w->e);
    l->names = (char *)all.data;
    all = (struct buf){0};
    const char *at = l->names;
    for (size_t k = 0; k < l->count; k++, at += strlen(at) + 1)
        l->sorted[k] = at;
    qsort(l->sorted, l->count, sizeof(*l->sorted), compare_names);
    return 0;
}

static void leave(struct walk *w)
{
    struct level *l = &w->stack[w->depth--];
    own_close(&l->fd);
    free(l->names);
    free(l->sorted);
}

/* Takes the folder's own line and goes into it. fd is the walk's from here on. */
static int enter(struct walk *w, int fd)
{
    struct stat st;
    struct inventory_line line = {.kind = 'd', .path = w->path[0] ? w->path : "."};
    own_fd own = fd;
    if (w->depth + 1 == IMPRINT_DEPTH_MAX)
        return refuse_path(w, PALE_LIMIT, "folders are nested too deeply");
    if (fstat(own, &st) < 0)
        return about_path(w, "look at");
    int r = mend_mode(w, own, &st);
    if (r == 0)
        r = mend_attributes(w, own);
    line.mode = st.st_mode & 07777;
    if (r == 0)
        r = inventory_put(&w->out, &line, w->e);
    if (r < 0)
        return r;
    w->i->folders++;
    w->stack[++w->depth] = (struct level){.fd = take_fd(&own), .path_len = strlen(w->path)};
    return read_names(w, &w->stack[w->depth]);
}

static int take_folder(struct walk *w, int dir, const char *name)
{
    struct stat st;
    own_fd path_fd = fd_open_beneath(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (path_fd < 0 || fstat(path_fd, &st) < 0)
        return about_path(w, "open");
    /* One that its owner has closed is opened first. */
    int r = (st.st_mode & 0700) != 0700 ? mend_mode(w, path_fd, &st) : 0;
    if (r < 0)
        return r;
    int fd = fd_open_beneath(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    return fd < 0 ? about_path(w, "open") : enter(w, fd);
}

static int take_entry(struct walk *w, int dir, const char *name)
{
    struct stat st;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return about_path(w, "look at");
    if (S_ISDIR(st.st_mode))
        return take_folder(w, dir, name);
    if (S_ISREG(st.st_mode))
        return take_file(w, dir, name, &st);
    return S_ISLNK(st.st_mode) ? take_link(w, dir, name) : special(w, dir, name, &st);
}

/* The next entry of the folder we are in, or back out of it. */
static int take_next(struct walk *w)
{
    struct level *l = &w->stack[w->depth];
    w->path[l->path_len] = 0;
    if (l->next == l->count) {
        leave(w);
        return 0;
    }
    const char *name = l->sorted[l->next++];
    size_t n = strlen(name);
    if (l->path_len + 1 + n >= sizeof(w->path))
        return refuse_path(w, PALE_LIMIT, "a path in it is longer than 4095 bytes");
    if (++w->entries > IMAGE_ENTRIES_MAX)
        return err_set(w->e, PALE_LIMIT, "an image has at most %u entries", IMAGE_ENTRIES_MAX);
    if (w->i->stop && *w->i->stop)
        return err_set(w->e, PALE_GONE, "interrupted");
    if (w->i->progress && w->entries % PROGRESS_ENTRIES == 0)
        w->i->progress(w->i->progress_arg, w->entries, w->i->bytes);
    snprintf(w->path + l->path_len, sizeof(w->path) - l->path_len, "%s%s", l->path_len ? "/" : "", name);
    return take_entry(w, l->fd, name);
}

int imprint_take(struct imprint *i, struct pale_err *e)
{
    own_mem struct walk *w = calloc(1, sizeof(*w));
    if (!w)
        return err_nomem(e);
    w->i = i;
    w->e = e;
    w->depth = -1;
    int r = inventory_open(&w->out, i->inventory_fd, i->expected_fd, e);
    if (r == 0)
        r = inventory_preface(&w->out, i->preface, e);
    int fd = r < 0 ? -1 : openat(i->root_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (r == 0)
        r = fd < 0 ? err_os(e, "open the image's root") : enter(w, fd);
    while (r == 0 && w->depth >= 0)
        r = take_next(w);
    while (w->depth >= 0)
        leave(w);
    if (r == 0)
        r = inventory_close(&w->out, i->digest, e);
    else
        inventory_drop(&w->out);
    return r;
}
