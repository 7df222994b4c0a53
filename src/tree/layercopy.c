/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the two passes that copy a layer. */
#include "tree/layercopy.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "base/quote.h"
#include "base/sha256.h"
#include "tree/descent.h"
#include "tree/twins.h"

#define TICK_MS 20
#define SETTLED_SECONDS 60
#define KEY_BYTES 16

/* What the first pass saw at a path. */
struct seen {
    uint8_t key[KEY_BYTES]; /* of the digest of the path: no box can make two paths share it */
    uint64_t ino, size;
    struct timespec ctime; /* zero: written too recently to be trusted */
    bool used;
};

struct layercopy {
    int from_fd, to_fd;
    bool second, settles; /* settles: its file system stamps what is stored through mappings, once it is clean */
    struct seen *seen;
    size_t seen_count, seen_cap; /* a power of two */
    struct twins twins;          /* of its files with several names, where the first copy is */
    struct layercopy_count count;
};

const struct layercopy_count *layercopy_count(const struct layercopy *c)
{
    return &c->count;
}

int layercopy_new(int from_fd, int to_fd, struct layercopy **ret, struct pale_err *e)
{
    struct statfs fs;
    if (fstatfs(from_fd, &fs) < 0)
        return err_os(e, "look at the layer");
    struct layercopy *c = calloc(1, sizeof(*c));
    if (!c)
        return err_nomem(e);
    c->from_fd = from_fd;
    c->to_fd = to_fd;
    c->settles = fs.f_type != TMPFS_MAGIC;
    *ret = c;
    return 0;
}

void layercopy_free(struct layercopy *c)
{
    if (!c)
        return;
    twins_done(&c->twins);
    free(c->seen);
    free(c);
}

/* --- what the first pass saw --- */

static void key_of(const char *path, uint8_t ret[KEY_BYTES])
{
    uint8_t digest[SHA256_BYTES];
    struct sha256 h;
    sha256_init(&h);
    sha256_add(&h, path, strlen(path));
    sha256_final(&h, digest);
    memcpy(ret, digest, KEY_BYTES);
}

static struct seen *find_seen(struct seen *table, size_t cap, const uint8_t key[KEY_BYTES])
{
    uint64_t at;
    memcpy(&at, key, sizeof(at));
    while (table[at & (cap - 1)].used && memcmp(table[at & (cap - 1)].key, key, KEY_BYTES) != 0)
        at++;
    return &table[at & (cap - 1)];
}

static int grow_seen(struct layercopy *c, struct pale_err *e)
{
    if (c->seen_count * 2 < c->seen_cap)
        return 0;
    size_t cap = c->seen_cap ? c->seen_cap * 2 : 1024;
    if (cap > LAYERCOPY_SEEN_MAX)
        return err_set(e, PALE_LIMIT, "the layer has more than %u entries; stop the box to take a snapshot", LAYERCOPY_SEEN_MAX / 2);
    struct seen *table = calloc(cap, sizeof(*table));
    if (!table)
        return err_nomem(e);
    for (size_t i = 0; i < c->seen_cap; i++)
        if (c->seen[i].used)
            *find_seen(table, cap, c->seen[i].key) = c->seen[i];
    free(c->seen);
    c->seen = table;
    c->seen_cap = cap;
    return 0;
}

static int remember(struct layercopy *c, const char *path, const struct leaf *l, struct timespec now, struct pale_err *e)
{
    uint8_t key[KEY_BYTES];
    int r = grow_seen(c, e);
    if (r < 0)
        return r;
    key_of(path, key);
    struct seen *s = find_seen(c->seen, c->seen_cap, key);
    c->seen_count += s->used ? 0 : 1;
    memcpy(s->key, key, KEY_BYTES);
    s->used = true;
    s->ino = l->st.st_ino;
    s->size = (uint64_t)l->st.st_size;
    int64_t age_ms = (int64_t)(now.tv_sec - l->st.st_ctim.tv_sec) * 1000 + (now.tv_nsec - l->st.st_ctim.tv_nsec) / 1000000;
    s->ctime = age_ms > TICK_MS ? l->st.st_ctim : (struct timespec){0};
    return 0;
}

/* Only in the second pass, and only if the copy has it. */
static bool is_known(const struct layercopy *c, const char *path, const struct leaf *l)
{
    uint8_t key[KEY_BYTES];
    if (!c->second || !c->seen_cap)
        return false;
    key_of(path, key);
    const struct seen *s = find_seen(c->seen, c->seen_cap, key);
    return s->used && s->ctime.tv_sec != 0 && s->ino == l->st.st_ino && s->size == (uint64_t)l->st.st_size &&
           s->ctime.tv_sec == l->st.st_ctim.tv_sec && s->ctime.tv_nsec == l->st.st_ctim.tv_nsec;
}

/* --- files with several names --- */

static int remember_twin(struct layercopy *c, const char *path, const struct leaf *l, struct pale_err *e)
{
    bool full = false;
    int r = twins_add(&c->twins, &l->st, path, &full, e);
    return full ? err_set(e, PALE_LIMIT, "the layer has more than %u files with several names", LAYERCOPY_TWINS_MAX / 2) : r;
}

/* --- one entry --- */

static int open_parent(struct layercopy *c, const char *path, const char **ret_name)
{
    char folder[PATH_BYTES_MAX];
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 0;
    memcpy(folder, path, n);
    folder[n] = 0;
    *ret_name = slash ? slash + 1 : path;
    return fd_open_beneath(c->to_fd, n ? folder : ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
}

/* Every user. attribute, those of the overlay too. */
static int copy_attributes(int from_path_fd, int to_fd, struct pale_err *e)
{
    char at[32];
    own_mem char *list = malloc(XATTR_LIST_BYTES_MAX), *value = malloc(XATTR_LIST_BYTES_MAX);
    if (!list || !value)
        return err_nomem(e);
    snprintf(at, sizeof(at), "/proc/self/fd/%d", from_path_fd);
    ssize_t n = listxattr(at, list, XATTR_LIST_BYTES_MAX);
    if (n < 0)
        return errno == ENOTSUP ? 0 : err_os(e, "read the attributes");
    for (ssize_t i = 0; i < n; i += (ssize_t)strlen(list + i) + 1) {
        if (strncmp(list + i, "user.", 5) != 0)
            continue;
        ssize_t len = getxattr(at, list + i, value, XATTR_LIST_BYTES_MAX);
        if (len < 0 && errno == ENODATA)
            continue;
        if (len < 0 || fsetxattr(to_fd, list + i, value, (size_t)len, 0) < 0)
            return err_os(e, "copy an attribute");
    }
    return 0;
}

/* Owner, mode and time of what a descriptor of ours stands for. */
static int dress(int fd, const struct leaf *l, struct pale_err *e)
{
    struct stat st;
    struct timespec times[2] = {l->st.st_atim, l->st.st_mtim};
    if (fstat(fd, &st) < 0)
        return err_os(e, "look at the copy");
    if ((st.st_uid != l->st.st_uid || st.st_gid != l->st.st_gid) && fchown(fd, l->st.st_uid, l->st.st_gid) < 0)
        return err_os(e, "give the copy to uid %u; copy as root of the box's user namespace", (unsigned)l->st.st_uid);
    if (fchmod(fd, l->st.st_mode & 07777) < 0 || futimens(fd, times) < 0)
        return err_os(e, "set mode and time of the copy");
    return 0;
}

/* The same for what cannot be opened: links, whiteouts, FIFOs, sockets. They are made with their mode. The folder is ours alone, so the
 * name is what was just made. */
static int dress_name(int dir_fd, const char *name, const struct leaf *l, struct pale_err *e)
{
    struct stat st;
    struct timespec times[2] = {l->st.st_atim, l->st.st_mtim};
    if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return err_os(e, "look at the copy");
    if ((st.st_uid != l->st.st_uid || st.st_gid != l->st.st_gid) &&
        fchownat(dir_fd, name, l->st.st_uid, l->st.st_gid, AT_SYMLINK_NOFOLLOW) < 0)
        return err_os(e, "give the copy to uid %u; copy as root of the box's user namespace", (unsigned)l->st.st_uid);
    return utimensat(dir_fd, name, times, AT_SYMLINK_NOFOLLOW) < 0 ? err_os(e, "set the time of the copy") : 0;
}

static int copy_file(struct layercopy *c, const struct descent_step *s, int dir_fd, const char *name, struct pale_err *e)
{
    struct leaf now;
    const char *twin = s->leaf.st.st_nlink > 1 ? twins_find(&c->twins, &s->leaf.st) : NULL;
    if (twin && linkat(c->to_fd, twin, dir_fd, name, 0) == 0) {
        c->count.hard_links++;
        return 0;
    }
    own_fd from = leaf_reopen(s->fd, O_RDONLY);
    if (from < 0)
        return err_os(e, "open");
    own_fd to = openat(dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (to < 0)
        return err_os(e, "make the copy");
    int r = filecopy_run(from, to, &c->count.content, e);
    if (r == 0)
        r = copy_attributes(s->fd, to, e);
    if (r == 0)
        r = leaf_look_fd(from, s->path, false, &now, e); /* its time may be newer by now; the second pass sees to that */
    if (r == 0)
        r = dress(to, &now, e);
    c->count.copied++;
    return r == 0 && s->leaf.st.st_nlink > 1 ? remember_twin(c, s->path, &s->leaf, e) : r;
}

static int copy_other(const struct descent_step *s, int dir_fd, const char *name, struct pale_err *e)
{
    char to[PATH_BYTES_MAX];
    if (s->leaf.kind == LEAF_DEVICE)
        return err_set(e, PALE_CORRUPT, "a device, which no box can make; do not use this layer");
    if (s->leaf.kind == LEAF_LINK) {
        ssize_t n = readlinkat(s->fd, "", to, sizeof(to) - 1);
        if (n < 0)
            return err_os(e, "read the link");
        to[n] = 0;
        if (symlinkat(to, dir_fd, name) < 0)
            return err_os(e, "make the link");
    } else {
        mode_t was = umask(0);
        int r = mknodat(dir_fd, name, s->leaf.st.st_mode & (S_IFMT | 07777), s->leaf.kind == LEAF_WHITEOUT ? makedev(0, 0) : 0);
        (void)umask(was);
        if (r < 0)
            return err_os(e, "make the copy");
    }
    return dress_name(dir_fd, name, &s->leaf, e);
}

/* Forgets what the first pass copied of a folder's attributes: some may be gone. */
static int drop_attributes(int fd, struct pale_err *e)
{
    own_mem char *list = malloc(XATTR_LIST_BYTES_MAX);
    ssize_t n = list ? flistxattr(fd, list, XATTR_LIST_BYTES_MAX) : 0;
    if (!list)
        return err_nomem(e);
    for (ssize_t i = 0; i < n; i += (ssize_t)strlen(list + i) + 1)
        if (strncmp(list + i, "user.", 5) == 0 && fremovexattr(fd, list + i) < 0)
            return err_os(e, "renew the attributes of the folder");
    return n < 0 && errno != ENOTSUP ? err_os(e, "read the attributes of the copy") : 0;
}

/* Makes a folder, or opens the one that the first pass made. It gets its mode and time when it is left for the last time: until then it is
 * ours to fill. */
static int enter_folder(const struct descent_step *s, int dir_fd, const char *name, struct pale_err *e)
{
    struct stat st;
    bool there = fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
    if (there && !S_ISDIR(st.st_mode) && unlinkat(dir_fd, name, 0) < 0)
        return err_os(e, "replace the copy");
    there = there && S_ISDIR(st.st_mode);
    if (!there && mkdirat(dir_fd, name, 0700) < 0)
        return err_os(e, "make the folder");
    own_fd fd = fd_open_beneath(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    if (fd < 0)
        return err_os(e, "open the copy of the folder");
    int r = there ? drop_attributes(fd, e) : 0;
    return r < 0 ? r : copy_attributes(s->fd, fd, e);
}

static int leave_folder(struct layercopy *c, const struct descent_step *s, struct pale_err *e)
{
    own_fd fd = fd_open_beneath(c->to_fd, s->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    return fd < 0 ? err_os(e, "open the copy of the folder") : dress(fd, &s->leaf, e);
}

/* Takes out of the copy of the folder at path ("": the root) what the layer no longer holds. */
static int drop_gone(struct layercopy *c, const struct descent *d, const char *path, struct pale_err *e)
{
    own_roster names = {0};
    size_t budget = TREE_NAMES_BYTES_MAX;
    own_fd fd = -1;
    int r = leaf_open_folder(c->to_fd, path, &fd, e);
    if (r == 0)
        r = roster_add_folder(&names, fd, &budget, e);
    for (size_t i = 0; r == 0 && i < names.count; i++) {
        const char *name = roster_name(&names, i);
        if (descent_has(d, name))
            continue;
        c->count.removed++;
        if (unlinkat(fd, name, 0) < 0)
            r = fd_remove_tree(fd, name, e);
    }
    return r;
}

static int copy_entry(struct layercopy *c, const struct descent_step *s, struct pale_err *e)
{
    const char *name;
    own_fd dir = open_parent(c, s->path, &name);
    if (dir < 0)
        return err_os(e, "open the folder of the copy");
    if (s->leaf.kind == LEAF_FOLDER)
        return enter_folder(s, dir, name, e);
    if (c->second) {
        c->count.again++;
        if (unlinkat(dir, name, 0) < 0 && errno != ENOENT) {
            int r = fd_remove_tree(dir, name, e); /* it was a folder before */
            if (r < 0)
                return r;
        }
    }
    return s->leaf.kind == LEAF_FILE ? copy_file(c, s, dir, name, e) : copy_other(s, dir, name, e);
}

static void count_entry(struct layercopy_count *n, enum leaf_kind kind)
{
    n->files += kind == LEAF_FILE;
    n->folders += kind == LEAF_FOLDER;
    n->links += kind == LEAF_LINK;
    n->others += kind != LEAF_FILE && kind != LEAF_FOLDER && kind != LEAF_LINK;
}

/* Sends a young file to the disk, so that whoever stores into it through a mapping is stamped anew; then looks at it again. */
static int settle(const struct layercopy *c, struct descent_step *s, struct timespec now, struct pale_err *e)
{
    if (c->second || !c->settles || s->leaf.kind != LEAF_FILE || now.tv_sec - s->leaf.st.st_ctim.tv_sec > SETTLED_SECONDS)
        return 0;
    own_fd fd = leaf_reopen(s->fd, O_RDONLY);
    if (fd < 0)
        return err_os(e, "open");
    if (sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE) < 0)
        return err_os(e, "settle");
    return leaf_look_fd(s->fd, s->path, false, &s->leaf, e);
}

static int visit(struct layercopy *c, struct descent *d, struct descent_step *s, struct pale_err *e)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (s->trouble) {
        *e = *s->trouble;
        return -(int)e->code;
    }
    if (s->leaving)
        return c->second ? leave_folder(c, s, e) : 0;
    count_entry(&c->count, s->leaf.kind);
    if (s->leaf.kind != LEAF_FOLDER && is_known(c, s->path, &s->leaf)) {
        if (s->leaf.kind == LEAF_FILE && s->leaf.st.st_nlink > 1)
            return remember_twin(c, s->path, &s->leaf, e);
        return 0;
    }
    int r = settle(c, s, now, e);
    if (r == 0)
        r = copy_entry(c, s, e);
    if (r == 0 && c->second && s->leaf.kind == LEAF_FOLDER)
        r = drop_gone(c, d, s->path, e);
    return r < 0 || c->second || s->leaf.kind == LEAF_FOLDER ? r : remember(c, s->path, &s->leaf, now, e);
}

static int run(struct layercopy *c, struct pale_err *e)
{
    own_descent d;
    struct descent_step s;
    char shown[240];
    int r;
    struct layercopy_count *n = &c->count;
    n->files = n->folders = n->links = n->others = 0;
    twins_done(&c->twins);
    descent_init(&d, c->from_fd, false);
    r = descent_begin(&d, e);
    if (r == 0 && c->second)
        r = drop_gone(c, &d, "", e);
    while (r == 0 && (r = descent_next(&d, &s, e)) > 0) {
        r = visit(c, &d, &s, e);
        /* While the box works, anything may vanish under us or become something else; the second pass comes back to it. */
        bool passing = !c->second && (r == -PALE_BUSY || r == -PALE_NOT_FOUND);
        if (r < 0 && !passing)
            return err_prefix(e, "copy %s", quote_into(shown, sizeof(shown), s.path, strlen(s.path)));
        r = 0;
    }
    return r;
}

int layercopy_first(struct layercopy *c, struct pale_err *e)
{
    return c->settles ? run(c, e) : 0;
}

int layercopy_second(struct layercopy *c, struct pale_err *e)
{
    c->second = true;
    return run(c, e);
}
