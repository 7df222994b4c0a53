/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the bundle stream. */
#include "base/bundle.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bundlehead.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/own.h"
#include "base/quote.h"

#define PIECE 65536u

/* One per process: a bundle is sent or received by a process that does nothing else meanwhile. */
static uint8_t piece[PIECE];

/* --- sending --- */

struct sender {
    int out;
    bool inside; /* a file, whose bytes were promised: no head can follow yet */
    struct bundle_count count;
    struct pale_err *e;
};

static int put_bytes(struct sender *s, const void *p, size_t n)
{
    return fd_write_full(s->out, p, n) ? 0 : err_os(s->e, "send");
}

static int put_mark(struct sender *s, enum bundle_type type)
{
    uint8_t head[BUNDLE_HEAD_MAX];
    return put_bytes(s, head, bundle_head_put(head, &(struct bundle_head){.type = type}, ""));
}

static int put_entry(struct sender *s, enum bundle_type type, const struct stat *st, uint64_t size, const char *name)
{
    uint8_t head[BUNDLE_HEAD_MAX];
    struct bundle_head h = {.type = type, .mode = st->st_mode & 0777, .mtime = st->st_mtime, .size = size};
    size_t n = strnlen(name, BUNDLE_NAME_MAX + 1);
    if (n > BUNDLE_NAME_MAX)
        return err_set(s->e, PALE_LIMIT, "a name is longer than %u bytes", BUNDLE_NAME_MAX);
    h.name_len = (uint8_t)n;
    return put_bytes(s, head, bundle_head_put(head, &h, name));
}

/* What is left of a file after its first piece. One that shrinks meanwhile is filled up with zeros, one that grows is cut. */
static int send_rest(struct sender *s, int fd, uint64_t left, const char *name)
{
    bool shrunk = false;
    while (left > 0) {
        size_t want = left < PIECE ? (size_t)left : PIECE;
        ssize_t n = shrunk ? 0 : fd_read_full(fd, piece, want);
        if (n < 0)
            return err_os(s->e, "read %s", name);
        if ((size_t)n < want) {
            shrunk = true;
            memset(piece + n, 0, want - (size_t)n);
        }
        int r = put_bytes(s, piece, want);
        if (r < 0)
            return r;
        left -= want;
    }
    s->count.changed += shrunk || fd_read_full(fd, piece, 1) > 0;
    return 0;
}

static int send_file(struct sender *s, int dirfd, const char *name, const struct stat *seen, bool follow)
{
    struct stat st;
    /* Not caught by a FIFO that took the file's place since it was looked at. */
    own_fd fd = openat(dirfd, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | (follow ? 0 : O_NOFOLLOW));
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_os(s->e, "open %s", name);
    if (!S_ISREG(st.st_mode) || st.st_ino != seen->st_ino)
        return err_set(s->e, PALE_BUSY, "a file was replaced while it was copied");
    /* The size goes ahead of the bytes. What fits one piece is read first and its size is what was read, which is true of files
     * that change, and of those of /proc, whose size the kernel does not tell. */
    ssize_t n = fd_read_full(fd, piece, PIECE);
    if (n < 0)
        return err_os(s->e, "read %s", name);
    uint64_t size = n == PIECE && st.st_size > n ? (uint64_t)st.st_size : (uint64_t)n;
    int r = put_entry(s, BUNDLE_FILE, &st, size, name);
    if (r < 0)
        return r;
    s->inside = true;
    r = put_bytes(s, piece, (size_t)n);
    if (r == 0 && n == PIECE)
        r = send_rest(s, fd, size - (uint64_t)n, name);
    if (r < 0)
        return r;
    s->inside = false;
    s->count.bytes += size;
    s->count.files++;
    return 0;
}

static int send_link(struct sender *s, int dirfd, const char *name, const struct stat *st)
{
    ssize_t n = readlinkat(dirfd, name, (char *)piece, PATH_BYTES_MAX - 1);
    if (n < 0)
        return err_os(s->e, "read link %s", name);
    int r = put_entry(s, BUNDLE_LINK, st, (uint64_t)n, name);
    s->count.links++;
    return r < 0 ? r : put_bytes(s, piece, (size_t)n);
}

static int send_leaf(struct sender *s, int dirfd, const char *name, const struct stat *st, bool follow)
{
    if (S_ISREG(st->st_mode))
        return send_file(s, dirfd, name, st, follow);
    if (S_ISLNK(st->st_mode))
        return send_link(s, dirfd, name, st);
    s->count.skipped++;
    return 0;
}

/* A folder being walked: leaves first, then folders, so that the position in it is only lost around a descent. */
struct level {
    int fd;
    bool folders;
};

/* Goes through one folder's entries. Returns 1 and the name of a folder to enter, 0 at the end, or a negative code. */
static int scan(struct sender *s, struct level *l, char ret_name[BUNDLE_NAME_MAX + 1], struct stat *ret_st)
{
    static _Alignas(8) char block[32768];
    for (;;) {
        long n = fd_entries(l->fd, block, sizeof(block));
        if (n < 0)
            return err_os(s->e, "read a folder");
        if (n == 0 && l->folders)
            return 0;
        if (n == 0) {
            l->folders = true;
            lseek(l->fd, 0, SEEK_SET);
            continue;
        }
        for (long at = 0; at < n;) {
            const struct dirent *d = (const void *)(block + at);
            struct stat st;
            at += d->d_reclen;
            if (!bundle_is_name(d->d_name, strlen(d->d_name)) || fstatat(l->fd, d->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
                S_ISDIR(st.st_mode) != l->folders)
                continue;
            if (l->folders) {
                snprintf(ret_name, BUNDLE_NAME_MAX + 1, "%s", d->d_name);
                *ret_st = st;
                lseek(l->fd, d->d_off, SEEK_SET);
                return 1;
            }
            int r = send_leaf(s, l->fd, d->d_name, &st, false);
            if (r < 0)
                return r;
        }
    }
}

/* The name is one step and never "..", so only a link of that name could lead away. Not by openat2, which a box's filter refuses. */
static int open_folder(int dirfd, const char *name)
{
    return openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int send_tree(struct sender *s, int fd, const char *name, const struct stat *st)
{
    struct level stack[BUNDLE_DEPTH_MAX] = {{.fd = fd}};
    int depth = 0, r = put_entry(s, BUNDLE_FOLDER, st, 0, name);
    while (r >= 0 && depth >= 0) {
        char sub[BUNDLE_NAME_MAX + 1];
        struct stat sub_st = {0};
        r = scan(s, &stack[depth], sub, &sub_st);
        if (r == 0) {
            if (depth > 0)
                close(stack[depth].fd);
            depth--;
            s->count.folders++;
            r = put_mark(s, BUNDLE_LEAVE);
        } else if (r == 1) {
            if (depth + 1 == BUNDLE_DEPTH_MAX)
                r = err_set(s->e, PALE_LIMIT, "folders are nested deeper than %d", BUNDLE_DEPTH_MAX);
            else if ((stack[depth + 1] = (struct level){.fd = open_folder(stack[depth].fd, sub)}).fd < 0)
                r = err_os(s->e, "open folder %s", sub);
            else if ((r = put_entry(s, BUNDLE_FOLDER, &sub_st, 0, sub)) == 0)
                depth++;
            else
                close(stack[depth + 1].fd);
        }
    }
    for (; depth > 0; depth--)
        close(stack[depth].fd);
    return r;
}

static int send_any(struct sender *s, int dirfd, const char *name, bool follow)
{
    struct stat st;
    if (fstatat(dirfd, name, &st, follow ? 0 : AT_SYMLINK_NOFOLLOW) < 0)
        return err_os(s->e, "%s", name);
    const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;
    if (S_ISDIR(st.st_mode)) {
        own_fd fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (follow ? 0 : O_NOFOLLOW));
        if (fd < 0)
            return err_os(s->e, "open folder %s", name);
        /* "." and "a/" have no name to send; whoever receives chooses one anyway. */
        return send_tree(s, fd, bundle_is_name(base, strlen(base)) ? base : "folder", &st);
    }
    if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
        return err_set(s->e, PALE_BAD_INPUT, "%s is no file, folder or symlink", name);
    own_fd parent = -1;
    if (slash) {
        char dir[PATH_BYTES_MAX];
        snprintf(dir, sizeof(dir), "%.*s", slash == name ? 1 : (int)(slash - name), name);
        if ((parent = openat(dirfd, dir, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0)
            return err_os(s->e, "open folder %s", dir);
    }
    return send_leaf(s, slash ? parent : dirfd, base, &st, follow);
}

int bundle_send(int out_fd, int dirfd, const char *name, bool follow, struct bundle_count *ret, struct pale_err *e)
{
    struct sender s = {.out = out_fd, .e = e};
    int r = send_any(&s, dirfd, name, follow);
    if (r >= 0)
        r = put_mark(&s, BUNDLE_END);
    if (r < 0 && !s.inside) {
        struct sender last = {.out = out_fd};
        (void)put_mark(&last, BUNDLE_ERROR);
    }
    *ret = s.count;
    return r < 0 ? r : 0;
}

/* --- receiving --- */

struct receiver {
    int in;
    bool inner_links_only;
    struct bundle_count count;
    struct pale_err *e;
};

/* An entry with its name as text. */
static int get_entry(struct receiver *r, struct bundle_head *ret, char ret_name[BUNDLE_NAME_MAX + 1])
{
    uint8_t head[BUNDLE_HEAD_BYTES];
    if (fd_read_full(r->in, head, sizeof(head)) != (ssize_t)sizeof(head))
        return err_set(r->e, PALE_CORRUPT, "the copy ended early");
    if (!bundle_head_parse(head, ret))
        return err_set(r->e, PALE_CORRUPT, "the copy is damaged");
    size_t n = ret->name_len;
    if (n && fd_read_full(r->in, ret_name, n) != (ssize_t)n)
        return err_set(r->e, PALE_CORRUPT, "the copy ended early");
    ret_name[n] = 0;
    if (n && !bundle_is_name(ret_name, n))
        return err_set(r->e, PALE_CORRUPT, "the copy holds a name that is no name");
    if (ret->type == BUNDLE_ERROR)
        return err_set(r->e, PALE_GONE, "the sender gave up");
    return 0;
}

/* As many bytes into the piece. */
static int get_bytes(struct receiver *r, size_t n)
{
    return fd_read_full(r->in, piece, n) == (ssize_t)n ? 0 : err_set(r->e, PALE_CORRUPT, "the copy ended early");
}

static int os_error(struct receiver *r, const char *what, const char *name)
{
    char shown[128];
    int os = errno;
    quote_into(shown, sizeof(shown), name, strlen(name));
    errno = os;
    return err_os(r->e, "%s %s", what, shown);
}

static int receive_bytes(struct receiver *r, int fd, uint64_t left, const char *name)
{
    while (left > 0) {
        size_t n = left < PIECE ? (size_t)left : PIECE;
        int res = get_bytes(r, n);
        if (res < 0)
            return res;
        if (!fd_write_full(fd, piece, n))
            return os_error(r, "write", name);
        r->count.bytes += n;
        left -= n;
    }
    return 0;
}

/* Into a file of a new name, then renamed over whatever stood there. */
static int receive_file(struct receiver *r, int dirfd, const struct bundle_head *h, const char *name)
{
    char tmp[64];
    snprintf(tmp, sizeof(tmp), ".pale-copy-%d.new", (int)getpid());
    unlinkat(dirfd, tmp, 0);
    own_fd fd = openat(dirfd, tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return os_error(r, "create", name);
    int res = receive_bytes(r, fd, h->size, name);
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = h->mtime}};
    if (res == 0 && (fchmod(fd, h->mode) < 0 || futimens(fd, times) < 0 || renameat(dirfd, tmp, dirfd, name) < 0))
        res = os_error(r, "create", name);
    if (res < 0)
        unlinkat(dirfd, tmp, 0);
    else
        r->count.files++;
    return res;
}

static int receive_link(struct receiver *r, int dirfd, const struct bundle_head *h, const char *name, int depth)
{
    size_t n = (size_t)h->size;
    int res = get_bytes(r, n);
    if (res < 0)
        return res;
    if (memchr(piece, 0, n))
        return err_set(r->e, PALE_CORRUPT, "the copy holds a link that is no link");
    piece[n] = 0;
    if (r->inner_links_only && !bundle_is_inner_link((const char *)piece, depth)) {
        r->count.skipped++;
        return 0;
    }
    if (unlinkat(dirfd, name, 0) < 0 && errno != ENOENT)
        return os_error(r, "replace", name);
    if (symlinkat((const char *)piece, dirfd, name) < 0)
        return os_error(r, "link", name);
    r->count.links++;
    return 0;
}

/* Makes or enters a folder; a symlink of that name is replaced, not followed. */
static int enter_folder(struct receiver *r, int dirfd, const struct bundle_head *h, const char *name)
{
    int fd = open_folder(dirfd, name);
    if (fd >= 0)
        return fd;
    if ((errno == ELOOP || errno == ENOTDIR) && unlinkat(dirfd, name, 0) < 0)
        return os_error(r, "replace", name);
    if (mkdirat(dirfd, name, 0700) < 0)
        return os_error(r, "make folder", name);
    fd = open_folder(dirfd, name);
    if (fd < 0)
        return os_error(r, "open folder", name);
    fchmod(fd, h->mode | 0700);
    r->count.folders++;
    return fd;
}

static int receive_entry(struct receiver *r, int stack[], int *depth, const struct bundle_head *h, const char *name)
{
    int res = 0;
    switch (h->type) {
    case BUNDLE_FILE:
        return receive_file(r, stack[*depth], h, name);
    case BUNDLE_LINK:
        return receive_link(r, stack[*depth], h, name, *depth);
    case BUNDLE_FOLDER:
        if (*depth == BUNDLE_DEPTH_MAX)
            return err_set(r->e, PALE_LIMIT, "folders are nested deeper than %d", BUNDLE_DEPTH_MAX);
        res = enter_folder(r, stack[*depth], h, name);
        if (res >= 0)
            stack[++*depth] = res;
        return res < 0 ? res : 0;
    case BUNDLE_LEAVE:
        if (*depth == 0)
            return err_set(r->e, PALE_CORRUPT, "the copy leaves a folder it never entered");
        close(stack[(*depth)--]);
        return 0;
    default:
        return err_set(r->e, PALE_CORRUPT, "the copy is damaged");
    }
}

int bundle_receive(int in_fd, int dirfd, const char *name, bool inner_links_only, struct bundle_count *ret, struct pale_err *e)
{
    struct receiver r = {.in = in_fd, .inner_links_only = inner_links_only, .e = e};
    int stack[1 + BUNDLE_DEPTH_MAX] = {dirfd}, depth = 0, res;
    struct bundle_head h;
    char entry[BUNDLE_NAME_MAX + 1];
    bool first = true;
    if (strcmp(name, "..") == 0 || strchr(name, '/'))
        return err_set(e, PALE_BAD_INPUT, "%s: a copy needs one plain name", name);
    while ((res = get_entry(&r, &h, entry)) == 0 && h.type != BUNDLE_END) {
        /* The first entry takes the name the receiver chose; one more at the top would be a second bundle. */
        if (depth == 0 && !first) {
            res = err_set(e, PALE_CORRUPT, "the copy holds more than one thing");
            break;
        }
        if (first)
            snprintf(entry, sizeof(entry), "%s", name);
        first = false;
        if ((res = receive_entry(&r, stack, &depth, &h, entry)) < 0)
            break;
    }
    if (res == 0 && (depth != 0 || first))
        res = err_set(e, PALE_CORRUPT, "the copy ended early");
    for (; depth > 0; depth--)
        close(stack[depth]);
    *ret = r.count;
    return res;
}
