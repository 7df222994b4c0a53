/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the folders that hold a folder, by device and inode, through every mount of their file systems. */
#include "box/ancestors.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/stat.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/path.h"

#ifndef STATX_MNT_ID
#define STATX_MNT_ID 0x00001000u
#endif

unsigned long long ancestor_device(dev_t dev)
{
    return (unsigned long long)major(dev) << 32 | minor(dev);
}

/* What is open at fd, as a row of the set that does not own it. */
static int look(int fd, struct ancestor *ret, struct pale_err *e)
{
    struct statx st;
    if (syscall(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_MNT_ID, &st) < 0)
        return err_os(e, "look at a folder");
    *ret = (struct ancestor){.dev = (unsigned long long)st.stx_dev_major << 32 | st.stx_dev_minor,
                             .ino = st.stx_ino,
                             .mount = (st.stx_mask & STATX_MNT_ID) ? st.stx_mnt_id : 0,
                             .fd = -1,
                             .is_dir = S_ISDIR(st.stx_mode)};
    return 0;
}

/* Opens a folder for reading, which marks can be set on, or where that is not allowed as a place. */
static int open_folder(int dirfd, const char *name, bool *ret_readable)
{
    int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
    *ret_readable = fd >= 0;
    return fd >= 0 || errno != EACCES ? fd : openat(dirfd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static struct ancestor *find(const struct ancestors *s, const struct ancestor *a)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->at[i].dev == a->dev && s->at[i].ino == a->ino)
            return &s->at[i];
    return NULL;
}

const struct ancestor *ancestors_find(const struct ancestors *s, unsigned long long dev, unsigned long long ino)
{
    return find(s, &(struct ancestor){.dev = dev, .ino = ino});
}

/* Puts it into the set, with a copy of fd, or adds the role to the one that is there. *ret_known: it had that role by this mount. */
static int note(struct ancestors *s, const struct ancestor *a, int fd, unsigned role, bool *ret_known, struct pale_err *e)
{
    struct ancestor *old = find(s, a);
    if (ret_known)
        *ret_known = old && (old->roles & role) && old->mount == a->mount;
    if (old) {
        old->roles |= role;
        return 0;
    }
    if (s->count == ANCESTORS_MAX)
        return err_set(e, PALE_LIMIT, "more than %d folders hold what the box may write, or are mounted in it", ANCESTORS_MAX);
    if (s->count == s->room) {
        struct ancestor *more = realloc(s->at, (s->room + 16) * sizeof(*more));
        if (!more)
            return err_nomem(e);
        s->at = more;
        s->room += 16;
    }
    struct ancestor row = *a;
    row.roles = role;
    if (!s->is_light && (row.fd = fcntl(fd, F_DUPFD_CLOEXEC, 3)) < 0)
        return err_os(e, "hold a folder");
    s->at[s->count++] = row;
    return 0;
}

static int climb(struct ancestors *s, int start, const struct ancestor *from, unsigned levels, struct pale_err *e);

/* rest: the path of m's root below the root of by, if by shows the folder that m's root is in. */
static const char *root_below(const struct mount_row *m, const struct mount_row *by)
{
    size_t n = strcmp(by->root, "/") == 0 ? 0 : strlen(by->root);
    if (strcmp(m->device, by->device) != 0 || strncmp(m->root, by->root, n) != 0 || m->root[n] != '/' || !m->root[n + 1])
        return NULL;
    return m->root + n + 1;
}

/* A mount's root is a folder of its file system: climbs from there too, where another mount shows what is above it. */
static int cross(struct ancestors *s, const struct ancestor *top, struct pale_err *e)
{
    int r = s->mounts.text ? 0 : mount_table_read(&s->mounts, e);
    struct mount_row *m = r < 0 ? NULL : mount_table_find(&s->mounts, top->mount);
    if (!m || m->is_resolved || strcmp(m->root, "/") == 0)
        return r;
    m->is_resolved = true;
    for (size_t i = 0; r == 0 && i < s->mounts.count; i++) {
        char path[PATH_BYTES_MAX];
        struct ancestor a = {0};
        const char *below = root_below(m, &s->mounts.row[i]);
        if (!below || !path_join(path, sizeof(path), s->mounts.row[i].point, below))
            continue;
        own_fd fd = open(path, O_PATH | O_CLOEXEC);
        if (fd < 0 || look(fd, &a, NULL) < 0 || a.dev != top->dev || a.ino != top->ino || a.mount == top->mount)
            continue; /* something else stands there, or is mounted over it */
        if (a.is_dir)
            r = climb(s, fd, &a, ANCESTORS_ALL, e);
    }
    return r;
}

/* Notes all that hold the folder at start, up to the root. */
static int climb(struct ancestors *s, int start, const struct ancestor *from, unsigned levels, struct pale_err *e)
{
    struct ancestor here = *from;
    own_fd held = -1;
    for (unsigned level = 0; level < levels; level++) {
        struct ancestor up;
        bool readable = false, known = false;
        own_fd fd = open_folder(held >= 0 ? held : start, "..", &readable);
        if (fd < 0)
            return err_os(e, "look at the folder above");
        int r = look(fd, &up, e);
        if (r < 0)
            return r;
        bool is_top = up.dev == here.dev && up.ino == here.ino && up.mount == here.mount;
        if ((is_top || up.mount != here.mount) && (r = cross(s, &here, e)) < 0)
            return r;
        if (is_top)
            return 0;
        up.is_readable = readable;
        if ((r = note(s, &up, fd, ROLE_ABOVE, &known, e)) < 0 || known)
            return r;
        own_close(&held);
        held = take_fd(&fd);
        here = up;
    }
    return 0;
}

int ancestors_add_folder(struct ancestors *s, int fd, unsigned levels, struct pale_err *e)
{
    struct ancestor a = {0};
    bool readable = false;
    own_fd held = open_folder(fd, ".", &readable);
    if (held < 0)
        return err_os(e, "open a folder");
    int r = look(held, &a, e);
    a.is_readable = readable;
    if (r == 0)
        r = note(s, &a, held, ROLE_SHARED, NULL, e);
    return r < 0 ? r : climb(s, held, &a, levels, e);
}

/* A file, or a folder that we may not enter: the folder that has it under this name holds it. */
static int add_by_name(struct ancestors *s, int fd, const char *path, struct pale_err *e)
{
    char dir[PATH_BYTES_MAX];
    struct ancestor a = {0}, above = {0};
    bool readable = false;
    const char *slash = strrchr(path, '/');
    snprintf(dir, sizeof(dir), "%.*s", slash == path ? 1 : (int)(slash - path), path);
    own_fd up = open_folder(AT_FDCWD, dir, &readable);
    int r = up < 0 ? err_os(e, "open %s", dir) : look(fd, &a, e);
    if (r < 0 || (r = look(up, &above, e)) < 0 || (r = note(s, &a, fd, ROLE_SHARED, NULL, e)) < 0)
        return r;
    above.is_readable = readable;
    if ((r = note(s, &above, up, ROLE_ABOVE, NULL, e)) < 0 || (r = climb(s, up, &above, ANCESTORS_ALL, e)) < 0)
        return r;
    struct ancestor *file = find(s, &a);
    const struct ancestor *holder = find(s, &above);
    if (file && holder)
        file->holder = (size_t)(holder - s->at);
    return a.mount != above.mount ? cross(s, &a, e) : 0;
}

/* A file that stays under the folder it was found in. */
static int copy_file(struct ancestors *s, const struct ancestors *old, const struct ancestor *file, struct pale_err *e)
{
    struct ancestor above = old->at[file->holder];
    int r = note(s, &above, above.fd, ROLE_ABOVE, NULL, e);
    if (r == 0)
        r = climb(s, above.fd, &above, ANCESTORS_ALL, e);
    if (r == 0)
        r = note(s, file, file->fd, ROLE_SHARED, NULL, e);
    struct ancestor *now = find(s, file);
    const struct ancestor *holder = find(s, &above);
    if (r == 0 && now && holder)
        now->holder = (size_t)(holder - s->at);
    return r;
}

int ancestors_renew(const struct ancestors *old, struct ancestors *ret, struct pale_err *e)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < old->count; i++) {
        const struct ancestor *a = &old->at[i];
        struct stat st;
        if (!(a->roles & ROLE_SHARED) || fstat(a->fd, &st) < 0 || st.st_nlink == 0)
            continue;
        r = a->is_dir ? ancestors_add_folder(ret, a->fd, ANCESTORS_ALL, e) : copy_file(ret, old, a, e);
    }
    return r;
}

static int add_open(struct ancestors *s, int fd, const char *path, struct pale_err *e)
{
    struct ancestor a;
    int r = look(fd, &a, e);
    if (r < 0)
        return r;
    bool may_enter = a.is_dir && (faccessat(fd, "..", F_OK, 0) == 0 || errno != EACCES);
    return may_enter || !path[1] ? ancestors_add_folder(s, fd, ANCESTORS_ALL, e) : add_by_name(s, fd, path, e);
}

int ancestors_add_path(struct ancestors *s, const char *path, struct pale_err *e)
{
    own_fd fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR ? 0 : err_os(e, "open %s", path);
    int r = add_open(s, fd, path, e);
    if (r == 0 && !s->mounts.text)
        r = mount_table_read(&s->mounts, e);
    for (size_t i = 0; r == 0 && i < s->mounts.count; i++) {
        const char *point = s->mounts.row[i].point;
        if (!path_is_within(point, path) || strcmp(point, path) == 0)
            continue;
        struct ancestor ignored;
        own_fd below = open(point, O_PATH | O_CLOEXEC);
        if (below >= 0 && look(below, &ignored, NULL) == 0) /* a dead file server shows nobody anything */
            r = add_open(s, below, point, e);
    }
    return r < 0 ? err_prefix(e, "%s", path) : r;
}

void ancestors_done(struct ancestors *s)
{
    for (size_t i = 0; i < s->count; i++)
        own_close(&s->at[i].fd);
    free(s->at);
    mount_table_done(&s->mounts);
    *s = (struct ancestors){0};
}

const struct ancestor *ancestors_clash(const struct ancestors *a, const struct ancestors *b)
{
    for (size_t i = 0; i < a->count; i++) {
        const struct ancestor *other = find(b, &a->at[i]);
        if (other && ((a->at[i].roles | other->roles) & ROLE_SHARED))
            return &a->at[i];
    }
    return NULL;
}
