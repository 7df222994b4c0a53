/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the taking away.
 *
 * How it works: one rename moves a thing, a folder with all that is in it, out of the project into the quarantine; what the box holds
 * open of it leads nowhere any more. Only where project and quarantine are on different file systems, or the kernel's Landlock does not
 * know renames, it is copied as a bundle and removed. dirfd is a folder that was reached beneath the project, name a single name: the
 * box may swap what stands there, but whatever is moved was in that folder. A number N stands for the thing, N.path for where it
 * was, N.bundle for a copy. */
#include "warden/taking.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bundle.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/number.h"
#include "base/own.h"

#define DISCARD "discard"

int taking_open(struct taking *t, int fd, struct pale_err *e)
{
    _Alignas(8) char block[4096];
    long n;
    *t = (struct taking){.fd = fd};
    own_fd list = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (list < 0)
        return err_os(e, "open the quarantine");
    while ((n = fd_entries(list, block, sizeof(block))) > 0)
        for (long at = 0; at < n;) {
            const struct dirent *en = (const void *)(block + at);
            unsigned v = 0;
            for (const char *c = en->d_name; *c >= '0' && *c <= '9' && v < GUARD_KEPT_MAX; c++)
                v = v * 10 + (unsigned)(*c - '0');
            if (v > t->kept)
                t->kept = v;
            at += en->d_reclen;
        }
    return n < 0 ? err_os(e, "read the quarantine") : 0;
}

bool taking_has_room(const struct taking *t)
{
    return t->kept < GUARD_KEPT_MAX;
}

/* A folder whose owner has closed it can be neither moved nor emptied. By what was opened, not by a name that may be a link by then. */
static void open_up(int dirfd, const char *name)
{
    char path[32];
    own_fd at = openat(dirfd, name, O_PATH | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", at);
    if (at >= 0)
        (void)!chmod(path, 0700);
}

static bool move(int dirfd, const char *name, int to, const char *as)
{
    return renameat(dirfd, name, to, as) == 0;
}

/* The same though the box has closed the folder it is in, or the thing itself. */
static bool move_forced(int dirfd, const char *name, int to, const char *as)
{
    struct stat st;
    if (move(dirfd, name, to, as))
        return true;
    if (errno != EACCES || fstat(dirfd, &st) < 0)
        return false;
    (void)!fchmod(dirfd, st.st_mode | 0700);
    open_up(dirfd, name);
    bool done = move(dirfd, name, to, as);
    int why = errno;
    (void)!fchmod(dirfd, st.st_mode & 07777);
    errno = why;
    return done;
}

/* Removes it where it stands. */
static int remove_in_place(int dirfd, const char *name, struct pale_err *e)
{
    if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
        return 0;
    return errno == EISDIR || errno == EPERM || errno == ENOTEMPTY ? fd_remove_tree(dirfd, name, e) : err_os(e, "remove %s", name);
}

/* A file that is too large for a copy (the process has a limit for that) or a folder too deep is removed without one. */
static int copy_away(const struct taking *t, int dirfd, const char *name, const char *number, bool *ret_kept, struct pale_err *e)
{
    char as[32];
    struct bundle_count count;
    snprintf(as, sizeof(as), "%s.bundle", number);
    own_fd out = openat(t->fd, as, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (out < 0)
        return err_os(e, "write to the quarantine");
    *ret_kept = bundle_send(out, dirfd, name, false, &count, NULL) == 0;
    if (!*ret_kept)
        unlinkat(t->fd, as, 0);
    return remove_in_place(dirfd, name, e);
}

static int discard(const struct taking *t, int dirfd, const char *name, struct pale_err *e)
{
    if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (move_forced(dirfd, name, t->fd, DISCARD))
        return unlinkat(t->fd, DISCARD, 0) == 0 ? 0 : fd_remove_tree(t->fd, DISCARD, e);
    return errno == ENOENT ? 0 : errno == EXDEV ? remove_in_place(dirfd, name, e) : err_os(e, "take %s away", name);
}

int taking_take(struct taking *t, int dirfd, const char *name, const char *path, bool *ret_kept, struct pale_err *e)
{
    char number[16], beside[24];
    *ret_kept = false;
    if (!taking_has_room(t))
        return discard(t, dirfd, name, e);
    snprintf(number, sizeof(number), "%u", t->kept + 1);
    snprintf(beside, sizeof(beside), "%s.path", number);
    own_fd note = openat(t->fd, beside, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (note < 0 || !fd_write_full(note, path, strlen(path)))
        return discard(t, dirfd, name, e); /* no room on the disk: nothing can be kept */
    int r = 0;
    if (move_forced(dirfd, name, t->fd, number))
        *ret_kept = true;
    else if (errno == EXDEV)
        r = copy_away(t, dirfd, name, number, ret_kept, e);
    else if (errno != ENOENT)
        r = discard(t, dirfd, name, e);
    if (*ret_kept)
        t->kept++;
    else
        unlinkat(t->fd, beside, 0);
    return r;
}
