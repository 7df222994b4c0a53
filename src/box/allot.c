/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the allotments of boxes. */
#include "box/allot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/own.h"
#include "confine/quota.h"

/* Projects that are ours: far from the small numbers that people and other programs choose, and enough of them that one chosen by
 * chance is free. */
#define PROJECT_FIRST 0x50000000u
#define PROJECT_COUNT 0x01000000u
#define PROJECT_TRIES 64

/* One at a time chooses or takes back a project on this host, whatever folders he was told to use. Root's own, so that nobody else can
 * hold it. */
#define LOCK_DIR "/run/pale"
#define LOCK_FILE LOCK_DIR "/quota.lock"
#define LOCK_WAIT_MS 5000
#define LOCK_PAUSE_US 500

#define REMEDY                                                                                                                             \
    "use scratch: memory, leave limits.disk out, or as root turn project quotas on (ext4, unmounted: `tune2fs -O project,quota -Q "        \
    "prjquota DEVICE`, then `mount -o prjquota`; XFS: `mount -o prjquota`)"

bool allot_is_wanted(const struct policy *p)
{
    return p->limits[LIMIT_DISK].value && p->scratch == SCRATCH_DISK;
}

uint64_t allot_files(uint64_t bytes)
{
    uint64_t files = bytes / ALLOT_BYTES_PER_FILE;
    return files < ALLOT_FILES_LEAST ? ALLOT_FILES_LEAST : files;
}

static int lock_projects(int *ret, struct pale_err *e)
{
    struct stat st;
    if (mkdir(LOCK_DIR, 0700) < 0 && errno != EEXIST)
        return err_os(e, "make " LOCK_DIR);
    own_fd fd = open(LOCK_FILE, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_os(e, "open " LOCK_FILE);
    if (st.st_uid != 0 || !S_ISREG(st.st_mode))
        return err_set(e, PALE_DENIED, LOCK_FILE " is not root's; remove it");
    for (int64_t until = clock_ms() + LOCK_WAIT_MS; flock(fd, LOCK_EX | LOCK_NB) < 0; usleep(LOCK_PAUSE_US)) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return err_os(e, "lock " LOCK_FILE);
        if (clock_ms() > until)
            return err_set(e, PALE_BUSY, "somebody has been choosing a project for %d s (" LOCK_FILE ")", LOCK_WAIT_MS / 1000);
    }
    *ret = take_fd(&fd);
    return 0;
}

static bool is_ours(uint32_t project)
{
    return project >= PROJECT_FIRST && project - PROJECT_FIRST < PROJECT_COUNT;
}

static bool is_zero(const struct quota_amount *a)
{
    return a->bytes == 0 && a->files == 0;
}

static int choose_project(int fd, uint32_t *ret, struct pale_err *e)
{
    for (int i = 0; i < PROJECT_TRIES; i++) {
        uint32_t chance;
        struct quota_state s;
        if (getrandom(&chance, sizeof(chance), 0) != (ssize_t)sizeof(chance))
            return err_os(e, "getrandom");
        *ret = PROJECT_FIRST + chance % PROJECT_COUNT;
        int r = quota_look(fd, *ret, &s, e);
        if (r < 0 || (is_zero(&s.used) && is_zero(&s.limit)))
            return r;
    }
    return err_set(e, PALE_LIMIT, "no project is free on the file system; `pale gc` gives back those of boxes that are gone");
}

/* A folder with something in it would go on holding what was never counted. */
static int refuse_filled(int fd, struct pale_err *e)
{
    int filled = fd_has_entries(fd, ".", e);
    return filled > 0 ? err_set(e, PALE_UNSUPPORTED, "the box has files that were never counted; a new box would be held to it") : filled;
}

static int begin(int fd, const struct quota_amount *most, uint32_t *ret, struct pale_err *e)
{
    own_fd lock = -1;
    uint32_t project = 0;
    int r = refuse_filled(fd, e);
    if (r == 0)
        r = lock_projects(&lock, e);
    if (r == 0)
        r = choose_project(fd, &project, e);
    if (r == 0)
        r = quota_limit(fd, project, most, e);
    if (r < 0)
        return r;
    if ((r = quota_mark(fd, project, e)) < 0) {
        (void)!quota_limit(fd, project, &(struct quota_amount){0}, NULL);
        return r;
    }
    *ret = project;
    return 0;
}

static int give(int fd, const struct quota_amount *most, uint32_t *ret, struct pale_err *e)
{
    uint32_t project = 0;
    struct quota_state is;
    int r = quota_can_hold(fd, e);
    if (r == 0)
        r = quota_marked(fd, &project, e);
    if (r < 0)
        return r;
    if (project == 0)
        return begin(fd, most, ret, e);
    if (!is_ours(project))
        return err_set(e, PALE_UNSUPPORTED,
                       "the folder of the box's files hands on project %u, which is not ours (`chattr -P -p 0` takes it away)", project);
    r = quota_look(fd, project, &is, e);
    if (r == 0 && (is.limit.bytes != most->bytes || is.limit.files != most->files))
        r = quota_limit(fd, project, most, e);
    if (r == 0)
        *ret = project;
    return r;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

int allot_ease(int fd, struct pale_err *e)
{
    struct quota_state is;
    uint32_t project = 0;
    int r = quota_marked(fd, &project, e);
    if (r < 0 || !is_ours(project))
        return r;
    if ((r = quota_look(fd, project, &is, e)) < 0 || is_zero(&is.limit))
        return r;
    const struct quota_amount most = {.bytes = larger(is.limit.bytes, is.used.bytes) + ALLOT_SPARE_BYTES,
                                      .files = larger(is.limit.files, is.used.files) + ALLOT_SPARE_FILES};
    return quota_limit(fd, project, &most, e);
}

/* A policy that has no limit any more. The folder goes on counting, so that there can be one again. A file system that cannot be asked,
 * or holds none, is no reason not to start. */
static int lift(int fd, struct pale_err *e)
{
    struct pale_err why;
    struct quota_state is;
    uint32_t project = 0;
    if (quota_marked(fd, &project, &why) < 0 || !is_ours(project) || quota_can_hold(fd, &why) < 0)
        return 0;
    int r = quota_look(fd, project, &is, e);
    return r < 0 || is_zero(&is.limit) ? r : quota_limit(fd, project, &(struct quota_amount){0}, e);
}

int allot_give(int fd, const struct policy *p, uint32_t *ret, struct pale_err *e)
{
    const struct policy_limit *disk = &p->limits[LIMIT_DISK];
    struct pale_err why = {0};
    *ret = 0;
    if (!allot_is_wanted(p))
        return lift(fd, e);
    const struct quota_amount most = {.bytes = disk->value / 1024 * 1024, .files = allot_files(disk->value)};
    int r = give(fd, &most, ret, &why);
    if (r == -PALE_UNSUPPORTED)
        return disk->asked ? err_set(e, PALE_UNSUPPORTED, "limits.disk cannot be held: %s; " REMEDY, why.text) : 0;
    if (r < 0 && e)
        *e = why;
    return r < 0 ? err_prefix(e, "limits.disk") : 0;
}

int allot_check(int fd, uint32_t project, struct pale_err *e)
{
    uint32_t is = 0;
    int r = project ? quota_marked(fd, &is, e) : 0;
    if (r == 0 && is != project)
        r = err_set(e, PALE_CORRUPT, "limits.disk: a folder of the box's layers does not count to it; make a new box");
    return r;
}

/* The kernel counts the making of a folder to the project that is handed on, which may be full, and moves nothing there that counts to
 * another. So it is made beside, and counts to the project only while it is moved: root may give a file to a project that is full. */
static int move_exempt(int beside, const char *name, int made, int fd, uint32_t project, struct pale_err *e)
{
    int r = quota_mark(made, project, e);
    if (r == 0 && renameat(beside, name, fd, name) < 0)
        r = err_os(e, "move folder %s to the box's layers", name);
    if (r == 0 && (r = quota_mark(made, 0, e)) < 0)
        (void)unlinkat(fd, name, AT_REMOVEDIR);
    return r;
}

int allot_make_exempt(int fd, const char *name, int *ret, struct pale_err *e)
{
    uint32_t project = 0;
    int r = quota_marked(fd, &project, e);
    if (r < 0)
        return r;
    own_fd at = openat(fd, is_ours(project) ? ".." : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (at < 0 || mkdirat(at, name, 0700) < 0)
        return err_os(e, "make folder %s", name);
    own_fd made = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (made < 0)
        r = err_os(e, "open folder %s", name);
    else if (is_ours(project))
        r = move_exempt(at, name, made, fd, project, e);
    if (r < 0) {
        (void)unlinkat(at, name, AT_REMOVEDIR);
        return r;
    }
    *ret = take_fd(&made);
    return 0;
}

int allot_sweep(const char *folder, struct pale_err *e)
{
    struct pale_err why = {0};
    own_fd fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    own_fd lock = -1;
    if (fd < 0 || quota_can_hold(fd, &why) < 0)
        return 0;
    int r = lock_projects(&lock, e);
    uint32_t at = PROJECT_FIRST;
    while (r == 0 && is_ours(at)) {
        struct quota_state s;
        if ((r = quota_next(fd, at, &at, &s, &why)) < 0 || !is_ours(at))
            break;
        if (is_zero(&s.used) && !is_zero(&s.limit))
            r = quota_limit(fd, at, &(struct quota_amount){0}, &why);
        at++;
    }
    if (r < 0 && r != -PALE_NOT_FOUND && lock >= 0 && e)
        *e = why;
    return r == -PALE_NOT_FOUND ? 0 : r;
}
