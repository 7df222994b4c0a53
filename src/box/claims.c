/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the claims of boxes on host folders. */
#include "box/claims.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/own.h"
#include "base/path.h"
#include "base/weak.h"

#define PREFIX "claim-"
#define WIDE "claims.wide"
#define CLAIMS_BYTES_MAX (POLICY_LIST_MAX * PATH_BYTES_MAX)

/* One line of a claim: "device:inode path". */
static int add_line(struct buf *b, const char *path, struct pale_err *e)
{
    struct stat st = {0};
    if (stat(path, &st) < 0 && errno != ENOENT)
        return err_os(e, "look at %s", path);
    buf_addf(b, "%llx:%llx %s\n", (unsigned long long)st.st_dev, (unsigned long long)st.st_ino, path);
    return b->failed ? err_nomem(e) : 0;
}

/* Is inner within outer, where a box that has outer could reach it? What lies in a project's .pale is hidden from boxes. */
static bool holds(const char *outer, const char *inner)
{
    return path_is_within(inner, outer) && strncmp(inner + strlen(outer), "/.pale/", 7) != 0;
}

/* Do two lines speak of one folder, or of one inside the other? */
static bool clash(const char *a, size_t alen, const char *b, size_t blen)
{
    const char *ap = memchr(a, ' ', alen), *bp = memchr(b, ' ', blen);
    char apath[PATH_BYTES_MAX], bpath[PATH_BYTES_MAX];
    if (!ap || !bp)
        return true; /* a line we cannot read is no proof of anything */
    if (ap - a == bp - b && memcmp(a, b, (size_t)(ap - a)) == 0)
        return true;
    snprintf(apath, sizeof(apath), "%.*s", (int)(alen - (size_t)(ap + 1 - a)), ap + 1);
    snprintf(bpath, sizeof(bpath), "%.*s", (int)(blen - (size_t)(bp + 1 - b)), bp + 1);
    if (apath[0] != '/' || bpath[0] != '/')
        return true; /* nor is one without a path */
    return holds(apath, bpath) || holds(bpath, apath);
}

/* Compares our lines with those of a living keeper, whose first line is its box's name. */
static int compare(const char *mine, const char *theirs, struct pale_err *e)
{
    size_t head = strcspn(theirs, "\n");
    const char *rest = theirs[head] ? theirs + head + 1 : theirs + head;
    for (const char *a = mine; *a; a += strcspn(a, "\n") + 1)
        for (const char *b = rest; *b; b += strcspn(b, "\n"), b += *b == '\n') {
            size_t alen = strcspn(a, "\n"), blen = strcspn(b, "\n");
            if (!clash(a, alen, b, blen))
                continue;
            const char *path = memchr(a, ' ', alen);
            return err_set(
                e, PALE_DENIED,
                "%.*s is writable in box %.*s already, and no two boxes share a writable folder; stop that box, or mount it ro here",
                path ? (int)(alen - (size_t)(path + 1 - a)) : 0, path ? path + 1 : "", (int)head, theirs);
        }
    return 0;
}

static int check_one(int dir, const char *file, const char *mine, struct pale_err *e)
{
    own_fd fd = openat(dir, file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    own_buf theirs = {0};
    if (fd < 0)
        return errno == ENOENT ? 0 : err_os(e, "read the claims of another box");
    if (flock(fd, LOCK_SH | LOCK_NB) == 0) {
        unlinkat(dir, file, 0);
        return 0;
    }
    buf_init(&theirs, CLAIMS_BYTES_MAX);
    int r = fd_read_all(fd, &theirs, e);
    return r < 0 ? r : compare(mine, buf_text(&theirs), e);
}

static int check_all(int dir, const char *own, const char *mine, struct pale_err *e)
{
    int copy = fcntl(dir, F_DUPFD_CLOEXEC, 3);
    DIR *d = copy < 0 ? NULL : fdopendir(copy);
    int r = d ? 0 : err_os(e, "read the claims of other boxes");
    errno = 0;
    for (const struct dirent *en; r == 0 && (en = readdir(d)); errno = 0)
        if (strncmp(en->d_name, PREFIX, sizeof(PREFIX) - 1) == 0 && strcmp(en->d_name, own) != 0)
            r = check_one(dir, en->d_name, mine, e);
    if (r == 0 && errno)
        r = err_os(e, "read the claims of other boxes");
    if (d)
        closedir(d);
    else
        own_close(&copy);
    return r;
}

/* The folder of wide claims; -1 with ENOENT where there is none yet. */
static int open_wide(int dir, bool make)
{
    if (make && mkdirat(dir, WIDE, 0700) < 0 && errno != EEXIST)
        return -1;
    return openat(dir, WIDE, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Under the lock: with whom could we clash, do we, and our own file. */
static int take_locked(int dir, const struct claim *c, struct buf *lines, int *ret_fd, struct pale_err *e)
{
    char own[64];
    snprintf(own, sizeof(own), PREFIX "%s", c->id);
    own_fd wide = open_wide(dir, c->wide);
    if (wide < 0 && (c->wide || errno != ENOENT))
        return err_os(e, "open the claims of boxes");
    const char *mine = buf_text(lines);
    int r = weak_word("claims") || wide < 0 ? 0 : check_all(wide, own, mine, e);
    if (r == 0 && c->wide && !weak_word("claims"))
        r = check_all(dir, own, mine, e);
    if (r < 0)
        return r;
    int at = c->wide ? wide : dir;
    own_fd fd = openat(at, own, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || !fd_write_full(fd, c->name, strlen(c->name)) || !fd_write_full(fd, "\n", 1) ||
        !fd_write_full(fd, lines->data, lines->len)) {
        r = err_os(e, "write the claims of box %s", c->name);
        if (fd >= 0)
            unlinkat(at, own, 0);
        return r;
    }
    *ret_fd = take_fd(&fd);
    return 0;
}

int claims_take(const char *runtime_dir, const struct claim *c, int *ret_fd, struct pale_err *e)
{
    own_buf lines = {0};
    int r = 0;
    buf_init(&lines, CLAIMS_BYTES_MAX);
    for (size_t i = 0; r == 0 && i < c->count; i++)
        r = add_line(&lines, c->paths[i], e);
    if (r < 0)
        return r;
    own_fd dir = open(runtime_dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    own_fd lock = dir < 0 ? -1 : openat(dir, "claims.lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (lock < 0 || flock(lock, LOCK_EX) < 0)
        return err_os(e, "lock the claims of boxes in %s", runtime_dir);
    return take_locked(dir, c, &lines, ret_fd, e);
}

static const char *const file_places[] = {"", WIDE "/"};

void claims_sweep(const char *runtime_dir, const char *id)
{
    char path[PATH_BYTES_MAX];
    for (size_t i = 0; i < sizeof(file_places) / sizeof(file_places[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s" PREFIX "%s", runtime_dir, file_places[i], id);
        unlink(path);
    }
}

bool claims_are_left(const char *runtime_dir, const char *id)
{
    char path[PATH_BYTES_MAX];
    for (size_t i = 0; i < sizeof(file_places) / sizeof(file_places[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s" PREFIX "%s", runtime_dir, file_places[i], id);
        if (access(path, F_OK) == 0 || errno != ENOENT)
            return true;
    }
    return false;
}

void claims_drop(const char *runtime_dir, const char *id, int *fd)
{
    if (*fd < 0)
        return;
    claims_sweep(runtime_dir, id);
    own_close(fd);
}
