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

#include "base/fd.h"
#include "base/limits.h"
#include "base/own.h"
#include "base/quote.h"

#define CHUNK 65536u
#define HEAD_BYTES 16u
#define NAME_BYTES_MAX 255u

enum entry_type { ENTRY_FILE = 1, ENTRY_FOLDER, ENTRY_LINK, ENTRY_LEAVE, ENTRY_END, ENTRY_ERROR };

struct entry {
    enum entry_type type;
    mode_t mode;
    int64_t mtime;
    char name[NAME_BYTES_MAX + 1];
};

/* One per process: a bundle is sent or received by a process that does nothing else meanwhile. */
static uint8_t chunk[4 + CHUNK];

/* --- sending --- */

struct sender {
    int out;
    struct bundle_count count;
    struct pale_err *e;
};

static void put_number(uint8_t *p, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        p[i] = (uint8_t)(v >> (8 * i));
}

static uint64_t get_number(const uint8_t *p, int bytes)
{
    uint64_t v = 0;
    for (int i = 0; i < bytes; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

static int put_entry(struct sender *s, enum entry_type type, const struct stat *st, const char *name)
{
    uint8_t head[HEAD_BYTES + NAME_BYTES_MAX];
    size_t n = strnlen(name, NAME_BYTES_MAX + 1);
    if (n > NAME_BYTES_MAX)
        return err_set(s->e, PALE_LIMIT, "a name is longer than %u bytes", NAME_BYTES_MAX);
    head[0] = (uint8_t)type;
    head[1] = (uint8_t)n;
    put_number(head + 2, st ? st->st_mode & 0777 : 0, 2);
    put_number(head + 4, st ? (uint64_t)st->st_mtime : 0, 8);
    put_number(head + 12, 0, 4);
    memcpy(head + HEAD_BYTES, name, n);
    return fd_write_full(s->out, head, HEAD_BYTES + n) ? 0 : err_os(s->e, "send");
}

static int put_chunk(struct sender *s, size_t n)
{
    put_number(chunk, n, 4);
    return fd_write_full(s->out, chunk, 4 + n) ? 0 : err_os(s->e, "send");
}

static int send_file(struct sender *s, int dirfd, const char *name, const struct stat *seen)
{
    struct stat st;
    /* Not caught by a FIFO that took the file's place since it was looked at. */
    own_fd fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_os(s->e, "open %s", name);
    if (!S_ISREG(st.st_mode) || st.st_ino != seen->st_ino)
        return err_set(s->e, PALE_BUSY, "a file was replaced while it was copied");
    int r = put_entry(s, ENTRY_FILE, &st, name);
    while (r == 0) {
        ssize_t n = read(fd, chunk + 4, CHUNK);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_os(s->e, "read %s", name);
        r = put_chunk(s, (size_t)n);
        s->count.bytes += (uint64_t)n;
        if (n == 0)
            break;
    }
    s->count.files++;
    return r;
}

static int send_link(struct sender *s, int dirfd, const char *name, const struct stat *st)
{
    ssize_t n = readlinkat(dirfd, name, (char *)chunk + 4, PATH_BYTES_MAX - 1);
    if (n < 0)
        return err_os(s->e, "read link %s", name);
    int r = put_entry(s, ENTRY_LINK, st, name);
    s->count.links++;
    return r < 0 ? r : put_chunk(s, (size_t)n);
}

static int send_leaf(struct sender *s, int dirfd, const char *name, const struct stat *st)
{
    if (S_ISREG(st->st_mode))
        return send_file(s, dirfd, name, st);
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

static bool is_dot(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Goes through one folder's entries. Returns 1 and the name of a folder to enter, 0 at the end, or a negative code. */
static int scan(struct sender *s, struct level *l, char ret_name[NAME_BYTES_MAX + 1], struct stat *ret_st)
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
            if (is_dot(d->d_name) || fstatat(l->fd, d->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || S_ISDIR(st.st_mode) != l->folders)
                continue;
            if (l->folders) {
                snprintf(ret_name, NAME_BYTES_MAX + 1, "%s", d->d_name);
                *ret_st = st;
                lseek(l->fd, d->d_off, SEEK_SET);
                return 1;
            }
            int r = send_leaf(s, l->fd, d->d_name, &st);
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
    int depth = 0, r = put_entry(s, ENTRY_FOLDER, st, name);
    while (r >= 0 && depth >= 0) {
        char sub[NAME_BYTES_MAX + 1];
        struct stat sub_st;
        r = scan(s, &stack[depth], sub, &sub_st);
        if (r == 0) {
            if (depth > 0)
                close(stack[depth].fd);
            depth--;
            s->count.folders++;
            r = put_entry(s, ENTRY_LEAVE, NULL, "");
        } else if (r == 1) {
            if (depth + 1 == BUNDLE_DEPTH_MAX)
                r = err_set(s->e, PALE_LIMIT, "folders are nested deeper than %d", BUNDLE_DEPTH_MAX);
            else if ((stack[depth + 1] = (struct level){.fd = open_folder(stack[depth].fd, sub)}).fd < 0)
                r = err_os(s->e, "open folder %s", sub);
            else if ((r = put_entry(s, ENTRY_FOLDER, &sub_st, sub)) == 0)
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
        return fd < 0 ? err_os(s->e, "open folder %s", name) : send_tree(s, fd, base, &st);
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
    int at = slash ? parent : dirfd;
    if (follow) {
        /* What the name stands for may be a link: send what it points at, under this name. */
        char to[PATH_BYTES_MAX];
        ssize_t n = readlinkat(at, base, to, sizeof(to) - 1);
        if (n > 0) {
            to[n] = 0;
            return send_leaf(s, at, to, &st);
        }
    }
    return send_leaf(s, at, base, &st);
}

int bundle_send(int out_fd, int dirfd, const char *name, bool follow, struct bundle_count *ret, struct pale_err *e)
{
    struct sender s = {.out = out_fd, .e = e};
    int r = send_any(&s, dirfd, name, follow);
    if (r >= 0)
        r = put_entry(&s, ENTRY_END, NULL, "");
    if (r < 0) {
        struct sender last = {.out = out_fd};
        put_entry(&last, ENTRY_ERROR, NULL, "");
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

static bool is_plain_name(const char *name, size_t n)
{
    return n > 0 && strlen(name) == n && !memchr(name, '/', n) && !is_dot(name);
}

static int get_entry(struct receiver *r, struct entry *ret)
{
    uint8_t head[HEAD_BYTES];
    if (fd_read_full(r->in, head, sizeof(head)) != (ssize_t)sizeof(head))
        return err_set(r->e, PALE_CORRUPT, "the copy ended early");
    size_t n = head[1];
    *ret = (struct entry){.type = head[0], .mode = (mode_t)get_number(head + 2, 2), .mtime = (int64_t)get_number(head + 4, 8)};
    if (head[0] < ENTRY_FILE || head[0] > ENTRY_ERROR || ret->mode > 0777 || get_number(head + 12, 4) != 0)
        return err_set(r->e, PALE_CORRUPT, "the copy is damaged");
    if (n && fd_read_full(r->in, ret->name, n) != (ssize_t)n)
        return err_set(r->e, PALE_CORRUPT, "the copy ended early");
    if (ret->type <= ENTRY_LINK && !is_plain_name(ret->name, n))
        return err_set(r->e, PALE_CORRUPT, "the copy holds a name that is no name");
    if (ret->type == ENTRY_ERROR)
        return err_set(r->e, PALE_GONE, "the sender gave up");
    return 0;
}

static int get_chunk(struct receiver *r, size_t *ret_n)
{
    uint8_t len[4];
    if (fd_read_full(r->in, len, 4) != 4)
        return err_set(r->e, PALE_CORRUPT, "the copy ended early");
    size_t n = (size_t)get_number(len, 4);
    if (n > CHUNK)
        return err_set(r->e, PALE_CORRUPT, "the copy is damaged");
    if (fd_read_full(r->in, chunk, n) != (ssize_t)n)
        return err_set(r->e, PALE_CORRUPT, "the copy ended early");
    *ret_n = n;
    return 0;
}

static int os_error(struct receiver *r, const char *what, const char *name)
{
    char shown[128];
    int os = errno;
    quote_into(shown, sizeof(shown), name, strlen(name));
    errno = os;
    return err_os(r->e, "%s %s", what, shown);
}

/* Into a file of a new name, then renamed over whatever stood there. */
static int receive_file(struct receiver *r, int dirfd, const struct entry *en)
{
    char tmp[64];
    snprintf(tmp, sizeof(tmp), ".pale-copy-%d.new", (int)getpid());
    unlinkat(dirfd, tmp, 0);
    own_fd fd = openat(dirfd, tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return os_error(r, "create", en->name);
    int res;
    size_t n = 0;
    while ((res = get_chunk(r, &n)) == 0 && n > 0) {
        if (!fd_write_full(fd, chunk, n)) {
            res = os_error(r, "write", en->name);
            break;
        }
        r->count.bytes += n;
    }
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = en->mtime}};
    if (res == 0 && (fchmod(fd, en->mode) < 0 || futimens(fd, times) < 0 || renameat(dirfd, tmp, dirfd, en->name) < 0))
        res = os_error(r, "create", en->name);
    if (res < 0)
        unlinkat(dirfd, tmp, 0);
    else
        r->count.files++;
    return res;
}

/* Does a link at this depth (0: the bundle's own name) stay inside the bundle? */
static bool stays_inside(const char *target, int depth)
{
    bool named = false;
    if (target[0] == '/')
        return false;
    while (*target) {
        size_t n = strcspn(target, "/");
        bool up = n == 2 && target[0] == '.' && target[1] == '.';
        /* A ".." after a name climbs from wherever that name leads, which another link may decide. */
        if (up && (named || --depth < 0))
            return false;
        named = named || (n > 0 && !up);
        target += n;
        target += strspn(target, "/");
    }
    return true;
}

static int receive_link(struct receiver *r, int dirfd, const struct entry *en, int depth)
{
    size_t n = 0;
    int res = get_chunk(r, &n);
    if (res < 0)
        return res;
    if (n == 0 || n >= PATH_BYTES_MAX || memchr(chunk, 0, n))
        return err_set(r->e, PALE_CORRUPT, "the copy holds a link that is no link");
    chunk[n] = 0;
    if (r->inner_links_only && !stays_inside((const char *)chunk, depth - 1)) {
        r->count.skipped++;
        return 0;
    }
    if (unlinkat(dirfd, en->name, 0) < 0 && errno != ENOENT)
        return os_error(r, "replace", en->name);
    if (symlinkat((const char *)chunk, dirfd, en->name) < 0)
        return os_error(r, "link", en->name);
    r->count.links++;
    return 0;
}

/* Makes or enters a folder; a symlink of that name is replaced, not followed. */
static int enter_folder(struct receiver *r, int dirfd, const struct entry *en)
{
    int fd = open_folder(dirfd, en->name);
    if (fd >= 0)
        return fd;
    if ((errno == ELOOP || errno == ENOTDIR) && unlinkat(dirfd, en->name, 0) < 0)
        return os_error(r, "replace", en->name);
    if (mkdirat(dirfd, en->name, 0700) < 0)
        return os_error(r, "make folder", en->name);
    fd = open_folder(dirfd, en->name);
    if (fd < 0)
        return os_error(r, "open folder", en->name);
    fchmod(fd, en->mode | 0700);
    r->count.folders++;
    return fd;
}

static int receive_entry(struct receiver *r, int stack[], int *depth, const struct entry *en)
{
    int res = 0;
    switch (en->type) {
    case ENTRY_FILE:
        return receive_file(r, stack[*depth], en);
    case ENTRY_LINK:
        return receive_link(r, stack[*depth], en, *depth);
    case ENTRY_FOLDER:
        if (*depth + 1 >= BUNDLE_DEPTH_MAX)
            return err_set(r->e, PALE_LIMIT, "folders are nested deeper than %d", BUNDLE_DEPTH_MAX);
        res = enter_folder(r, stack[*depth], en);
        if (res >= 0)
            stack[++*depth] = res;
        return res < 0 ? res : 0;
    case ENTRY_LEAVE:
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
    int stack[BUNDLE_DEPTH_MAX] = {dirfd}, depth = 0, res;
    struct entry en;
    bool first = true;
    if (strcmp(name, "..") == 0 || strchr(name, '/'))
        return err_set(e, PALE_BAD_INPUT, "%s: a copy needs one plain name", name);
    while ((res = get_entry(&r, &en)) == 0 && en.type != ENTRY_END) {
        /* The first entry takes the name the receiver chose; one more at the top would be a second bundle. */
        if (depth == 0 && !first) {
            res = err_set(e, PALE_CORRUPT, "the copy holds more than one thing");
            break;
        }
        if (first)
            snprintf(en.name, sizeof(en.name), "%s", name);
        first = false;
        if ((res = receive_entry(&r, stack, &depth, &en)) < 0)
            break;
    }
    if (res == 0 && (depth != 0 || first))
        res = err_set(e, PALE_CORRUPT, "the copy ended early");
    for (; depth > 0; depth--)
        close(stack[depth]);
    *ret = r.count;
    return res;
}
