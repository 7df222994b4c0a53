/* SPDX-License-Identifier: Apache-2.0 */
/* Gives a stopped box another name.
 *
 * How it works: its state folder is found by its id, which stays; so a rename is the rename of its data folder and nothing else. Before
 * that the state folder says where the box is on its way to (`moving`), so that it is found under either name; afterwards that link
 * becomes the one that says where it is. Whoever is killed in between leaves a box that is found, and a link that the next one settles. */
#include "box/rename.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/path.h"
#include "box/audit.h"
#include "box/identity.h"
#include "box/life.h"

#define LOCK_WAIT_MS 3000

/* From one name to another that is free. */
static int move_name(int dir, const char *from, const char *to)
{
    struct stat st;
    if (syscall(SYS_renameat2, dir, from, dir, to, RENAME_NOREPLACE) == 0)
        return 0;
    /* Some file systems know no flags. There a folder takes the place of an empty one at most. */
    if (errno != EINVAL || fstatat(dir, to, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return -1;
    return renameat(dir, from, dir, to);
}

/* The place of that name beside another, of the same box. */
static int beside(const struct place *p, const char *name, struct place *ret, struct pale_err *e)
{
    char dir[PATH_BYTES_MAX];
    int r = place_check_new_name(name, e);
    if (r < 0)
        return r;
    *ret = *p;
    place_above(p->data, dir);
    if (!path_join(ret->data, sizeof(ret->data), dir, name))
        return err_set(e, PALE_BAD_INPUT, "the path of %s is too long", name);
    memcpy(ret->name, name, strlen(name) + 1);
    return 0;
}

/* The lock that its keeper takes. */
static int lock_box(const struct place *p, int state, int *ret_fd, struct pale_err *e)
{
    own_fd fd = openat(state, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_os(e, "open %s/lock", p->state);
    /* Somebody who renames it, or has just stopped it, is done in a moment. A keeper listens. */
    int64_t until = clock_ms() + LOCK_WAIT_MS;
    while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return err_os(e, "lock %s/lock", p->state);
        if (access(p->socket, F_OK) == 0)
            return err_set(e, PALE_BUSY, "box %s is running; `pale stop %s` it first", p->name, p->name);
        if (clock_ms() > until)
            return err_set(e, PALE_BUSY, "somebody has been starting, stopping or renaming box %s for %d s; try again", p->name,
                           LOCK_WAIT_MS / 1000);
        usleep(1000);
    }
    *ret_fd = take_fd(&fd);
    return 0;
}

int rename_settle(const char *state_dir, const char *id, int state, struct pale_err *e)
{
    char to[PATH_BYTES_MAX], from[PATH_BYTES_MAX];
    if (!identity_recorded(state_dir, IDENTITY_MOVING, to))
        return 0;
    /* One that was only just made, and moved before anybody saw it, has no other. */
    bool is_it = identity_is_at(to, id) || !identity_recorded(state_dir, IDENTITY_DATA, from);
    int r = is_it ? renameat(state, IDENTITY_MOVING, state, IDENTITY_DATA) : unlinkat(state, IDENTITY_MOVING, 0);
    return r < 0 && errno != ENOENT ? err_os(e, "write %s/" IDENTITY_DATA, state_dir) : 0;
}

/* Before the deed. The chain of the log goes on under the new name. */
static int audit_rename(const struct place *from, const struct place *to, const char *caller, struct pale_err *e)
{
    const struct audit_deed d = {from->state, from->name, from->id, caller, "box.rename", AUDIT_BOX};
    return audit_record(&d, (const char *const[]){"to", to->name, NULL}, e);
}

static void audit_failure(const struct place *from, const struct place *to, const char *why)
{
    const struct audit_deed d = {from->state, from->name, from->id, NULL, "box.rename.failed", AUDIT_BOX};
    (void)!audit_record(&d, (const char *const[]){"to", to->name, "reason", why, NULL}, NULL);
}

static int move_box(const struct place *from, const struct place *to, int state, struct pale_err *e)
{
    own_fd above = place_open_above(from, e);
    if (above < 0)
        return above;
    if (symlinkat(to->data, state, IDENTITY_MOVING) < 0 || fsync(state) < 0)
        return err_os(e, "write %s/" IDENTITY_MOVING, from->state);
    if (move_name(above, from->name, to->name) < 0) {
        int os = errno;
        (void)unlinkat(state, IDENTITY_MOVING, 0);
        errno = os;
        return os == EEXIST || os == ENOTEMPTY
                   ? err_set(e, PALE_EXISTS, "there is already %s; choose another name, or `pale rm` that box first", to->data)
                   : err_os(e, "rename %s to %s", from->data, to->name);
    }
    /* It has its new name; what follows is for those who come later. */
    (void)!fsync(above);
    (void)!renameat(state, IDENTITY_MOVING, state, IDENTITY_DATA);
    (void)!fsync(state);
    (void)!futimens(state, NULL); /* a daemon that watches hears of this */
    return 0;
}

int rename_box(const struct place *p, const char *name, const char *caller, struct place *ret, struct pale_err *e)
{
    own_fd lock = -1;
    struct place to;
    struct stat st;
    if (strcmp(p->name, name) == 0)
        return err_set(e, PALE_EXISTS, "box %s has that name already", name);
    int r = beside(p, name, &to, e);
    if (r < 0)
        return r;
    own_fd state = open(p->state, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (state < 0)
        return errno == ENOENT ? err_set(e, PALE_NOT_FOUND, "box %s is not there any more", p->name) : err_os(e, "open %s", p->state);
    if ((r = lock_box(p, state, &lock, e)) < 0 || (r = rename_settle(p->state, p->id, state, e)) < 0)
        return r;
    /* Somebody else may have renamed or removed it since it was found. */
    if (!identity_is_at(p->data, p->id) || faccessat(state, "policy", F_OK, 0) < 0)
        return err_set(e, PALE_NOT_FOUND, "box %s is not there any more", p->name);
    if (lstat(to.data, &st) == 0)
        return err_set(e, PALE_EXISTS, "there is already %s; choose another name, or `pale rm` that box first", to.data);
    if ((r = life_clear(p, e)) < 0 || (r = audit_rename(p, &to, caller, e)) < 0)
        return r;
    if ((r = move_box(p, &to, state, e)) < 0) {
        audit_failure(p, &to, e ? e->text : "");
        return r;
    }
    *ret = to;
    return 0;
}
