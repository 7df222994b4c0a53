/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the /etc of boxes: nothing of the host's comes in but what stands in the tables here. */
#include "tier/etc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/own.h"
#include "base/sha256.h"

/* Files and folders that programs read to find their way; none names a person, a host or a secret. A trailing '*' stands for
 * any ending; the last component alone may have one. */
static const char *const shown[] = {
    "alternatives", "bash.bashrc", "debian_version", "fonts",     "gai.conf",   "host.conf",   "inputrc", "java-*",
    "ld.so.cache",  "ld.so.conf",  "locale.alias",   "localtime", "login.defs", "lsb-release", "magic",   "mailcap",
    "mime.types",   "os-release",  "perl",           "profile",   "profile.d",  "protocols",   "python*", "rpc",
    "services",     "shells",      "terminfo",       "timezone",  "vim",
};
static const char *const shown_ssl[] = {"certs", "openssl.cnf"};

/* Raised when the tables or the generated texts change, so that an older part is not taken for ours. */
#define ETC_FORMAT 2
#define COPY_MAX (8u << 20)
#define DEPTH_MAX 8

/* A part is a folder with what boxes show, and beside it, where no box sees them, files for keepers to lock. The kernel goes through
 * all the locks of a file for each that comes or goes, so a thousand keepers have more than one file. */
#define SHOWN "shown"
#define LOCKS 16

const char *const etc_own_names[ETC_OWN_FILES + 1] = {"hostname", "hosts", "machine-id", "resolv.conf"};

size_t etc_own_files(const struct wall_plan *plan)
{
    return plan->policy->network == NETWORK_HOST ? ETC_OWN_FILES + 1 : ETC_OWN_FILES;
}

static void copy_resolv(char *ret, size_t cap)
{
    own_fd fd = open("/etc/resolv.conf", O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd < 0 ? 0 : fd_read_full(fd, ret, cap - 1);
    ret[n > 0 ? n : 0] = 0;
}

void etc_own_text(const struct wall_plan *plan, size_t which, char *ret, size_t cap)
{
    if (which == 0)
        snprintf(ret, cap, "%s\n", plan->hostname);
    else if (which == 1)
        snprintf(ret, cap, "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n127.0.1.1 %s\n", plan->hostname);
    else if (which == 2)
        snprintf(ret, cap, "%s\n", plan->machine_id);
    else
        copy_resolv(ret, cap);
}

static bool matches(const char *pattern, const char *name)
{
    size_t n = strlen(pattern);
    return pattern[n - 1] == '*' ? strncmp(pattern, name, n - 1) == 0 : strcmp(pattern, name) == 0;
}

static bool is_shown(const char *const *list, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (matches(list[i], name))
            return true;
    return false;
}

/* What cannot be looked at: boxes do without a file that is not there or not for us, but not without one that a moment's trouble
 * hides, since what is made now is shown for a long time. */
static int without(const char *name, struct pale_err *e)
{
    bool is_absent = errno == ENOENT || errno == ENOTDIR || errno == EACCES || errno == EPERM || errno == ELOOP || errno == ENXIO;
    return is_absent ? 0 : err_os(e, "look at /etc/%s", name);
}

/* --- mount points --- */

/* Nothing can be mounted where there is nothing, and the part is read-only: a place that the policy shows a file or folder of the host's
 * /etc at is made with the part, which then has a name of its own. Only what the operator has named comes in, by a mount over it. */
struct points {
    const char *path; /* below /etc */
    bool is_dir;
};

struct all_points {
    struct points *item;
    size_t count;
};

static void points_done(struct all_points *p)
{
    free(p->item);
}

static int find_points(const struct policy *policy, struct all_points *ret, struct pale_err *e)
{
    static const char below[] = "/etc/";
    const struct policy_strings *l = &policy->read;
    ret->item = l->count ? calloc(l->count, sizeof(*ret->item)) : NULL;
    if (l->count && !ret->item)
        return err_nomem(e);
    for (size_t i = 0; i < l->count; i++) {
        struct stat st;
        bool is_there = strncmp(l->item[i], below, strlen(below)) == 0 && lstat(l->item[i], &st) == 0;
        if (is_there)
            ret->item[ret->count++] = (struct points){l->item[i] + strlen(below), S_ISDIR(st.st_mode)};
    }
    return 0;
}

/* What is there already will do; where a link or a file is in the way, the mount says so. */
static int make_point(int etc, const struct points *p, struct pale_err *e)
{
    own_fd at = fcntl(etc, F_DUPFD_CLOEXEC, 3);
    for (const char *from = p->path; at >= 0;) {
        char name[256];
        size_t n = strcspn(from, "/");
        bool last = !from[n];
        snprintf(name, sizeof(name), "%.*s", (int)n, from);
        int r = last && !p->is_dir ? mknodat(at, name, S_IFREG | 0444, 0) : mkdirat(at, name, 0755);
        if (r < 0 && errno != EEXIST)
            return err_os(e, "make the place of /etc/%s in boxes", p->path);
        if (last)
            return 0;
        int next = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        own_close(&at);
        at = next;
        from += n + 1;
    }
    return 0;
}

/* --- the name --- */

static int add_stat(struct sha256 *h, int etc, const char *name, struct pale_err *e)
{
    struct stat st;
    if (fstatat(etc, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return without(name, e);
    const uint64_t v[] = {st.st_ino, (uint64_t)st.st_size, (uint64_t)st.st_mtim.tv_sec, (uint64_t)st.st_mtim.tv_nsec, st.st_mode};
    sha256_add(h, name, strlen(name) + 1);
    sha256_add(h, v, sizeof(v));
    return 0;
}

static int digest(int etc, const struct ids *ids, const struct all_points *points, char ret[SHA256_HEX], struct pale_err *e)
{
    /* The folder itself tells of names that came or went, patterns among them. */
    static const char *const more[] = {".", "ssl/certs", "ssl/certs/ca-certificates.crt", "ssl/openssl.cnf"};
    struct sha256 h;
    uint8_t d[SHA256_BYTES];
    const uint32_t who[] = {ETC_FORMAT, ids->uid, ids->gid};
    sha256_init(&h);
    sha256_add(&h, who, sizeof(who));
    int r = 0;
    for (size_t i = 0; r == 0 && i < sizeof(more) / sizeof(more[0]); i++)
        r = add_stat(&h, etc, more[i], e);
    for (size_t i = 0; r == 0 && i < sizeof(shown) / sizeof(shown[0]); i++)
        if (!strchr(shown[i], '*'))
            r = add_stat(&h, etc, shown[i], e);
    for (size_t i = 0; i < points->count; i++) {
        sha256_add(&h, points->item[i].is_dir ? "/" : ".", 1);
        sha256_add(&h, points->item[i].path, strlen(points->item[i].path) + 1);
    }
    sha256_final(&h, d);
    sha256_to_hex(d, ret);
    return r;
}

/* --- copying --- */

/* Into what the box has too? */
static bool leads_into_base(const char *target)
{
    static const char *const places[] = {"/usr/", "/bin/", "/sbin/", "/lib/"};
    const char *bare = target;
    while (strncmp(bare, "../", 3) == 0)
        bare += 3;
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
        if (strncmp(target, places[i], strlen(places[i])) == 0 ||
            (bare != target && strncmp(bare, places[i] + 1, strlen(places[i]) - 1) == 0))
            return true;
    return false;
}

/* A symlink is copied if it leads there or stays in its own folder. */
static int copy_link(int from, int to, const char *name, struct pale_err *e)
{
    char target[512];
    ssize_t n = readlinkat(from, name, target, sizeof(target) - 1);
    if (n <= 0)
        return n < 0 ? without(name, e) : 0;
    target[n] = 0;
    if (!leads_into_base(target) && strchr(target, '/'))
        return 0;
    return symlinkat(target, to, name) < 0 ? err_os(e, "link /etc/%s of boxes", name) : 0;
}

static int put_file(int dir, const char *name, const void *p, size_t n, struct pale_err *e)
{
    own_fd fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    return fd < 0 || !fd_write_full(fd, p, n) ? err_os(e, "write /etc/%s of boxes", name) : 0;
}

static int copy_file(int from, int to, const char *name, struct pale_err *e)
{
    own_fd fd = openat(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    own_buf b = {0};
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return without(name, e);
    /* What everybody may not read is not for boxes. */
    if (!S_ISREG(st.st_mode) || !(st.st_mode & S_IROTH))
        return 0;
    buf_init(&b, COPY_MAX);
    int r = fd_read_all(fd, &b, e);
    return r < 0 ? err_prefix(e, "/etc/%s", name) : put_file(to, name, b.data, b.len, e);
}

static int copy_any(int from, int to, const char *name, int depth, struct pale_err *e);

/* list NULL: everything in it. */
static int copy_entries(int from, int to, const char *const *list, size_t count, int depth, struct pale_err *e)
{
    int copy = openat(from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = copy < 0 ? NULL : fdopendir(copy);
    int r = 0;
    if (!d) {
        r = without(".", e);
        own_close(&copy);
        return r;
    }
    errno = 0;
    for (const struct dirent *en; r == 0 && (en = readdir(d)); errno = 0)
        if (strcmp(en->d_name, ".") != 0 && strcmp(en->d_name, "..") != 0 && (!list || is_shown(list, count, en->d_name)))
            r = copy_any(from, to, en->d_name, depth, e);
    if (r == 0 && errno)
        r = err_os(e, "read a folder of /etc");
    closedir(d);
    return r;
}

static int copy_dir(int from, int to, const char *name, int depth, struct pale_err *e)
{
    own_fd source = openat(from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (source < 0 || depth > DEPTH_MAX)
        return source < 0 ? without(name, e) : 0;
    if (mkdirat(to, name, 0755) < 0)
        return err_os(e, "make /etc/%s of boxes", name);
    own_fd target = openat(to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return target < 0 ? err_os(e, "open /etc/%s of boxes", name) : copy_entries(source, target, NULL, 0, depth + 1, e);
}

static int copy_any(int from, int to, const char *name, int depth, struct pale_err *e)
{
    struct stat st;
    if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return without(name, e);
    if (S_ISDIR(st.st_mode))
        return copy_dir(from, to, name, depth, e);
    return S_ISLNK(st.st_mode) ? copy_link(from, to, name, e) : copy_file(from, to, name, e);
}

/* --- generated files --- */

static int generate(const struct ids *ids, int etc, struct pale_err *e)
{
    static const char nsswitch[] = "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nservices: files\nprotocols: files\n";
    static const char resolv[] = "# Names are answered inside the box, as far as its policy allows any.\nnameserver 127.0.0.1\n";
    char text[512];
    int n = snprintf(text, sizeof(text),
                     "root:x:0:0:root:/root:/bin/sh\n" WALL_USER ":x:%u:%u:" WALL_USER ":" WALL_HOME ":/bin/bash\n"
                     "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
                     ids->uid, ids->gid);
    int r = put_file(etc, "passwd", text, (size_t)n, e);
    n = snprintf(text, sizeof(text), "root:x:0:\ntty:x:5:\n" WALL_USER ":x:%u:\nnogroup:x:65534:\n", ids->gid);
    if (r == 0)
        r = put_file(etc, "group", text, (size_t)n, e);
    if (r == 0)
        r = put_file(etc, "nsswitch.conf", nsswitch, sizeof(nsswitch) - 1, e);
    if (r == 0)
        r = put_file(etc, "resolv.conf", resolv, sizeof(resolv) - 1, e);
    for (size_t i = 0; r == 0 && i < ETC_OWN_FILES; i++)
        r = put_file(etc, etc_own_names[i], "", 0, e);
    /* An empty folder, to cover parts of /proc with; there is nothing to put into a new home anyway. */
    if (r == 0 && mkdirat(etc, "skel", 0755) < 0)
        r = err_os(e, "make /etc/skel of boxes");
    return r;
}

static int fill(const struct ids *ids, int host_etc, int etc, struct pale_err *e)
{
    int r = generate(ids, etc, e);
    if (r == 0)
        r = copy_entries(host_etc, etc, shown, sizeof(shown) / sizeof(shown[0]), 0, e);
    if (r == 0 && mkdirat(etc, "ssl", 0755) < 0)
        r = err_os(e, "make /etc/ssl of boxes");
    if (r < 0)
        return r;
    own_fd to = openat(etc, "ssl", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (to < 0)
        return err_os(e, "open /etc/ssl of boxes");
    own_fd from = openat(host_etc, "ssl", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return from < 0 ? without("ssl", e) : copy_entries(from, to, shown_ssl, 2, 0, e);
}

int etc_fill_image(int etc_fd, bool with_host, struct pale_err *e)
{
    const struct ids ids = {.uid = 1000, .gid = 1000};
    mode_t old = umask(022);
    own_fd host_etc = open("/etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = !with_host ? generate(&ids, etc_fd, e) : host_etc < 0 ? err_os(e, "open /etc") : fill(&ids, host_etc, etc_fd, e);
    umask(old);
    return r;
}

static const char *lock_name(unsigned which, char ret[8])
{
    snprintf(ret, 8, "lock-%x", which);
    return ret;
}

/* The whole part. */
static int fill_part(const struct ids *ids, const struct all_points *points, int host_etc, int part, struct pale_err *e)
{
    char lock[8];
    for (unsigned i = 0; i < LOCKS; i++)
        if (mknodat(part, lock_name(i, lock), S_IFREG | 0600, 0) < 0)
            return err_os(e, "make the locks of the boxes' /etc");
    if (mkdirat(part, SHOWN, 0755) < 0)
        return err_os(e, "make the boxes' /etc");
    own_fd etc = openat(part, SHOWN, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int r = etc < 0 ? err_os(e, "open the boxes' /etc") : fill(ids, host_etc, etc, e);
    for (size_t i = 0; r == 0 && i < points->count; i++)
        r = make_point(etc, &points->item[i], e);
    return r;
}

/* Built under a name of this process's own, then renamed: a half-made one is never shown. */
static int build(const char *runtime_dir, const char *final, const struct ids *ids, const struct all_points *points, int host_etc,
                 struct pale_err *e)
{
    char name[40], made[40];
    own_fd dir = open(runtime_dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    snprintf(name, sizeof(name), ".etc-%d", (int)getpid());
    snprintf(made, sizeof(made), "%s", strrchr(final, '/') + 1);
    /* One that is there is a dead builder's, or a sweeper is at it: the caller sweeps and tries again. */
    if (dir < 0 || mkdirat(dir, name, 0755) < 0)
        return dir >= 0 && errno == EEXIST ? 0 : err_os(e, "make %s/%s", runtime_dir, name);
    own_fd part = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;
    if (part < 0 && errno == ENOENT)
        return 0; /* a sweeper took it for a dead one's before we could lock it */
    /* Locked as long as we work on it: whoever can lock it takes it for a dead one's, and may have done so just now. */
    if (part >= 0 && ((flock(part, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK) || (fstat(part, &st) == 0 && st.st_nlink == 0)))
        return 0;
    mode_t old = umask(022);
    int r = part < 0 ? err_os(e, "open %s/%s", runtime_dir, name) : fill_part(ids, points, host_etc, part, e);
    umask(old);
    if (r == 0 && renameat(dir, name, dir, made) == 0)
        return 0;
    bool lost_race = r == 0 && (errno == EEXIST || errno == ENOTEMPTY || errno == ENOENT);
    if (r == 0 && !lost_race)
        r = err_os(e, "keep %s", final);
    (void)!fd_remove_tree(dir, name, NULL);
    return r;
}

/* All its locks at once, so that nobody takes one while it is cleared away. */
static void remove_unheld(int dir, const char *name)
{
    own_fd part = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int held[LOCKS];
    char lock[8], gone[40];
    bool is_free = part >= 0 && flock(part, LOCK_EX | LOCK_NB) == 0;
    for (unsigned i = 0; i < LOCKS; i++) {
        held[i] = is_free ? openat(part, lock_name(i, lock), O_RDONLY | O_NOFOLLOW | O_CLOEXEC) : -1;
        is_free = is_free && (held[i] >= 0 ? flock(held[i], LOCK_EX | LOCK_NB) == 0 : errno == ENOENT);
    }
    /* Out of the way first: should we be killed, nobody takes the rest for the whole. */
    snprintf(gone, sizeof(gone), ".etc-gone-%d", (int)getpid());
    if (is_free && (name[0] == '.' || renameat(dir, name, dir, gone) == 0))
        (void)!fd_remove_tree(dir, name[0] == '.' ? name : gone, NULL);
    for (unsigned i = 0; i < LOCKS; i++)
        own_close(&held[i]);
}

/* Clears away parts that no keeper holds, and what a killed builder left. */
static void sweep(int dir, const char *keep)
{
    int copy = fcntl(dir, F_DUPFD_CLOEXEC, 3);
    DIR *d = copy < 0 ? NULL : fdopendir(copy);
    if (!d) {
        own_close(&copy);
        return;
    }
    for (const struct dirent *en; (en = readdir(d));) {
        bool half = strncmp(en->d_name, ".etc-", 5) == 0;
        if (!half && (strncmp(en->d_name, "etc-", 4) != 0 || strcmp(en->d_name, keep) == 0))
            continue;
        remove_unheld(dir, en->d_name);
    }
    closedir(d);
}

/* Opens and locks what is there; -1 if there is none, or if it was being cleared away. */
static int hold(const char *path)
{
    char lock[8];
    own_fd part = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    own_fd fd = part < 0 ? -1 : openat(part, lock_name((unsigned)getpid() % LOCKS, lock), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || flock(fd, LOCK_SH | LOCK_NB) < 0 || faccessat(part, SHOWN "/passwd", F_OK, 0) < 0)
        return -1;
    return take_fd(&fd);
}

int etc_prepare(const char *runtime_dir, const struct ids *ids, const struct policy *policy, char *ret, size_t cap, int *ret_lock,
                struct pale_err *e)
{
    char hex[SHA256_HEX];
    own_fd host_etc = open("/etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (host_etc < 0)
        return err_os(e, "open /etc");
    CLEANUP(points_done) struct all_points points = {0};
    int r = find_points(policy, &points, e);
    if (r == 0)
        r = digest(host_etc, ids, &points, hex, e);
    if (r < 0)
        return r;
    int n = snprintf(ret, cap, "%s/etc-%.16s", runtime_dir, hex);
    if (n < 0 || (size_t)n + sizeof("/" SHOWN) > cap)
        return err_set(e, PALE_BAD_INPUT, "path too long: %s", runtime_dir);
    for (int tries = 0; tries < 10; tries++) {
        if ((*ret_lock = hold(ret)) >= 0) {
            memcpy(ret + n, "/" SHOWN, sizeof("/" SHOWN));
            return 0;
        }
        if ((r = build(runtime_dir, ret, ids, &points, host_etc, e)) < 0)
            return r;
        own_fd dir = open(runtime_dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (dir >= 0)
            sweep(dir, strrchr(ret, '/') + 1);
    }
    return err_set(e, PALE_BUSY, "%s is made and cleared away again and again", ret);
}
