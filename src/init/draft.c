/* SPDX-License-Identifier: Apache-2.0 */
/* Owns drafts, and the builtin that writes a file.
 *
 * How it works: the content goes into a file without a name in the folder where it shall be, which vanishes with us if we are
 * killed. When its end has come and not merely our input's, the file gets its name: by link where nothing stands there, else under
 * a name of chance that is renamed over what stands there, so that a reader sees the old content or the new. A kill between those
 * two calls leaves `.pale-….new`, and so does one at any time on a file system that knows no files without a name. What stands at
 * the name is replaced, a symlink too, and not what it leads to. Nothing is flushed to the disk: boxes are no databases. */
#include "init/draft.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "init/builtin.h"
#include "init/names.h"
#include "wire/fileline.h"

#define DEFAULT_MODE 0644u
#define NAME_TRIES 16

struct draft {
    int dir_fd, fd;
    const char *name; /* what it shall be called */
    char now[40];     /* what it is called; "" for nothing */
};

static void draft_done(struct draft *d)
{
    if (d->now[0])
        unlinkat(d->dir_fd, d->now, 0);
    own_close(&d->fd);
    own_close(&d->dir_fd);
}

#define own_draft CLEANUP(draft_done) struct draft

static void chance_name(char *ret, size_t cap)
{
    uint64_t v = 0;
    if (getrandom(&v, sizeof(v), GRND_NONBLOCK) != (ssize_t)sizeof(v))
        v = (uint64_t)getpid();
    snprintf(ret, cap, ".pale-%016llx.new", (unsigned long long)v);
}

static bool open_named(struct draft *d)
{
    for (int i = 0; i < NAME_TRIES; i++) {
        char name[sizeof(d->now)];
        chance_name(name, sizeof(name));
        d->fd = openat(d->dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (d->fd >= 0)
            memcpy(d->now, name, sizeof(name));
        if (d->fd >= 0 || errno != EEXIST)
            break;
    }
    return d->fd >= 0;
}

/* The folder, and in it a file without a name where there are such; the way to name it leads through /proc. */
static bool draft_open(struct draft *d, const char *path)
{
    char dir[PATH_BYTES_MAX];
    const char *slash = strrchr(path, '/');
    d->name = slash ? slash + 1 : path;
    if (!d->name[0] || strcmp(d->name, ".") == 0 || strcmp(d->name, "..") == 0)
        return errno = *path ? EISDIR : ENOENT, false;
    int n = snprintf(dir, sizeof(dir), "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    if (n < 0 || (size_t)n >= sizeof(dir))
        return errno = ENAMETOOLONG, false;
    d->dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (d->dir_fd < 0)
        return false;
    if (access("/proc/self/fd/0", F_OK) == 0) {
        d->fd = openat(d->dir_fd, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
        if (d->fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL && errno != ENOENT))
            return d->fd >= 0;
    }
    return open_named(d);
}

static bool link_as(const struct draft *d, const char *name)
{
    char self[32];
    snprintf(self, sizeof(self), "/proc/self/fd/%d", d->fd);
    return linkat(AT_FDCWD, self, d->dir_fd, name, AT_SYMLINK_FOLLOW) == 0;
}

/* Gives the draft a name of chance, from which it can be renamed. */
static bool name_by_chance(struct draft *d)
{
    for (int i = 0; i < NAME_TRIES; i++) {
        char name[sizeof(d->now)];
        chance_name(name, sizeof(name));
        if (link_as(d, name)) {
            memcpy(d->now, name, sizeof(name));
            return true;
        }
        if (errno != EEXIST)
            break;
    }
    return false;
}

static bool publish(struct draft *d, bool new)
{
    if (!d->now[0] && link_as(d, d->name))
        return true;
    if (!d->now[0] && (new || errno != EEXIST || !name_by_chance(d)))
        return false;
    bool done = (new ? names_rename_new(d->dir_fd, d->now, d->dir_fd, d->name) : renameat(d->dir_fd, d->now, d->dir_fd, d->name)) == 0;
    if (done)
        d->now[0] = 0;
    return done;
}

/* Pieces up to the one that says it was the last. */
static int take_content(const struct draft *d, const char *path, struct pale_err *e)
{
    static char block[65536];
    uint8_t head[FILE_PIECE_HEAD];
    for (;;) {
        if (fd_read_full(0, head, sizeof(head)) != (ssize_t)sizeof(head))
            return err_set(e, PALE_GONE, "write %.400s: the content ended early; the file is as it was", path);
        uint32_t left = file_piece_length(head);
        if (left == 0)
            return 0;
        while (left > 0) {
            size_t want = left < sizeof(block) ? left : sizeof(block);
            if (fd_read_full(0, block, want) != (ssize_t)want)
                return err_set(e, PALE_GONE, "write %.400s: the content ended early; the file is as it was", path);
            if (!fd_write_full(d->fd, block, want))
                return err_os(e, "write %.400s", path);
            left -= (uint32_t)want;
        }
    }
}

/* Says no before the content comes where that is certain. Only permissions are kept: no bits that give rights away. */
static int look(const char *path, bool new, bool keep_mode, uint32_t *mode)
{
    struct stat st;
    if (new &&lstat(path, &st) == 0)
        return errno = EEXIST, -1;
    if (stat(path, &st) < 0)
        return 0;
    if (!S_ISREG(st.st_mode))
        return errno = S_ISDIR(st.st_mode) ? EISDIR : EINVAL, -1;
    if (keep_mode)
        *mode = st.st_mode & 0777;
    return 0;
}

int draft_write(const struct msg_exec *m)
{
    const char *path = m->argv[1];
    bool new = strcmp(m->argv[3], "new") == 0, keep_mode = strcmp(m->argv[2], "-") == 0;
    uint32_t mode = DEFAULT_MODE;
    own_draft d = {.dir_fd = -1, .fd = -1};
    struct pale_err e;
    if ((!new &&strcmp(m->argv[3], "over") != 0) || (!keep_mode && !file_mode_parse(m->argv[2], &mode)))
        return builtin_bad_words(m);
    if (look(path, new, keep_mode, &mode) < 0 || !draft_open(&d, path))
        return builtin_fail_os("write", path);
    if (take_content(&d, path, &e) < 0)
        return builtin_fail(&e);
    if (fchmod(d.fd, (mode_t)mode) < 0 || !publish(&d, new))
        return builtin_fail_os("write", path);
    return 0;
}

/* --- content that is at hand --- */

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* The owner is kept or nothing is changed; the group is kept where we may. */
static int keep_owner(const struct draft *d, const char *path, const struct stat *was, struct pale_err *e)
{
    struct stat st;
    if (fstat(d->fd, &st) < 0)
        return err_os(e, "write %.400s", path);
    if (st.st_uid != was->st_uid && fchown(d->fd, was->st_uid, (gid_t)-1) < 0)
        return err_set(e, PALE_DENIED, "write %.400s: it belongs to another user of the box", path);
    if (st.st_gid != was->st_gid)
        (void)!fchown(d->fd, (uid_t)-1, was->st_gid);
    return 0;
}

int draft_put(const char *path, const struct draft_content *c, struct pale_err *e)
{
    struct stat now;
    own_draft d = {.dir_fd = -1, .fd = -1};
    /* Who may not write the file may not replace it either, though the folder would let him. */
    if ((c->was && access(path, W_OK) < 0) || !draft_open(&d, path) || !fd_write_full(d.fd, c->p, c->n))
        return err_os(e, "write %.400s", path);
    int r = c->was ? keep_owner(&d, path, c->was, e) : 0;
    if (r < 0)
        return r;
    if (fchmod(d.fd, c->was ? c->was->st_mode & 0777 : c->mode) < 0)
        return err_os(e, "write %.400s", path);
    if (c->was && (lstat(path, &now) < 0 || !is_same(&now, c->was)))
        return err_set(e, PALE_BUSY, "write %.400s: somebody changed it meanwhile; read it again", path);
    return publish(&d, !c->was) ? 0 : err_os(e, "write %.400s", path);
}
