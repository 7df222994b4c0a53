/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the making and attaching of mounts. */
#include "confine/mounts.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mount.h>

#include "base/fd.h"
#include "base/own.h"
#include "base/weak.h"
#include "confine/kernel.h"

static int restrict_tree(int fd, unsigned flags, uint64_t propagation, struct pale_err *e)
{
    bool bare = weak_word("mount-flags");
    struct mount_attr a = {.attr_set = bare ? 0 : MOUNT_ATTR_NOSUID, .propagation = propagation};
    if (!(flags & MOUNTS_DEV) && !bare)
        a.attr_set |= MOUNT_ATTR_NODEV;
    if (flags & MOUNTS_RO)
        a.attr_set |= MOUNT_ATTR_RDONLY;
    if (flags & MOUNTS_NOEXEC)
        a.attr_set |= MOUNT_ATTR_NOEXEC;
    unsigned at = AT_EMPTY_PATH | (flags & MOUNTS_RECURSIVE ? AT_RECURSIVE : 0);
    return k_mount_setattr(fd, "", at, &a) < 0 ? err_os(e, "restrict a mount") : 0;
}

int mounts_restrict(int fd, unsigned flags, struct pale_err *e)
{
    return restrict_tree(fd, flags, 0, e);
}

static int clone_tree(int dirfd, const char *path, unsigned open_flags, unsigned flags, struct pale_err *e)
{
    own_fd tree = k_open_tree(dirfd, path, OPEN_TREE_CLONE | O_CLOEXEC | open_flags | (flags & MOUNTS_RECURSIVE ? AT_RECURSIVE : 0));
    if (tree < 0)
        return err_os(e, "clone the mount of %s", *path ? path : "a folder");
    int r = restrict_tree(tree, flags, MS_PRIVATE, e);
    return r < 0 ? r : take_fd(&tree);
}

int mounts_clone(int dirfd, const char *path, unsigned flags, bool follow, struct pale_err *e)
{
    return clone_tree(dirfd, path, follow ? 0 : AT_SYMLINK_NOFOLLOW, flags, e);
}

int mounts_copy(int dirfd, const char *path, struct pale_err *e)
{
    int tree = k_open_tree(dirfd, path, OPEN_TREE_CLONE | O_CLOEXEC | AT_SYMLINK_NOFOLLOW | AT_RECURSIVE);
    return tree < 0 ? err_os(e, "clone the mount of %s", path) : tree;
}

int mounts_clone_fd(int fd, unsigned flags, struct pale_err *e)
{
    return clone_tree(fd, "", AT_EMPTY_PATH, flags, e);
}

int mounts_idmap(int tree_fd, int userns_fd, struct pale_err *e)
{
    struct mount_attr a = {.attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)userns_fd};
    if (k_mount_setattr(tree_fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &a) < 0)
        return err_os(e, "map file owners of a host folder into the box (the file system must support idmapped mounts)");
    return 0;
}

/* Creates the superblock configured in fs and gives its detached mount. */
static int finish_fs(int fs, const char *what, unsigned attrs, struct pale_err *e)
{
    if (k_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return err_os(e, "make a %s", what);
    int m = k_fsmount(fs, attrs);
    return m < 0 ? err_os(e, "mount a %s", what) : m;
}

static bool set_number(int fs, const char *key, unsigned long long v, const char *fmt)
{
    char text[32];
    snprintf(text, sizeof(text), fmt, v);
    return k_fsconfig(fs, FSCONFIG_SET_STRING, key, text, 0) == 0;
}

int mounts_tmpfs(uint64_t bytes, uint64_t inodes, unsigned mode, struct pale_err *e)
{
    own_fd fs = k_fsopen("tmpfs");
    if (fs < 0)
        return err_os(e, "open tmpfs");
    if (!set_number(fs, "mode", mode, "%llo") || (bytes && !set_number(fs, "size", bytes, "%llu")) ||
        (inodes && !set_number(fs, "nr_inodes", inodes, "%llu")))
        return err_os(e, "configure tmpfs");
    return finish_fs(fs, "tmpfs", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, e);
}

int mounts_proc(struct pale_err *e)
{
    own_fd fs = k_fsopen("proc");
    if (fs < 0)
        return err_os(e, "open procfs");
    int m = finish_fs(fs, "procfs", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, e);
    if (m < 0 && e && e->os == EPERM)
        return err_set(e, PALE_UNSUPPORTED,
                       "mount a private /proc: refused by the kernel because the /proc of this host is itself partly hidden "
                       "(a container?); start the outer container with an unmasked /proc");
    return m;
}

int mounts_devpts(uid_t uid, gid_t gid, unsigned most, struct pale_err *e)
{
    own_fd fs = k_fsopen("devpts");
    if (fs < 0)
        return err_os(e, "open devpts");
    if (!set_number(fs, "uid", uid, "%llu") || !set_number(fs, "gid", gid, "%llu") || !set_number(fs, "mode", 0600, "%llo") ||
        !set_number(fs, "ptmxmode", 0666, "%llo") || (most && !set_number(fs, "max", most, "%llu")))
        return err_os(e, "configure devpts");
    return finish_fs(fs, "devpts", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, e);
}

int mounts_attach_at(int tree_fd, int at, const char *rel, struct pale_err *e)
{
    if (k_move_mount(tree_fd, "", at, "", MOVE_MOUNT_F_EMPTY_PATH | 0x00000040 /* MOVE_MOUNT_T_EMPTY_PATH */) < 0)
        return err_os(e, "attach a mount at %s", rel);
    return 0;
}

int mounts_attach(int tree_fd, int dirfd, const char *rel, struct pale_err *e)
{
    own_fd at = fd_open_beneath(dirfd, rel, O_PATH, 0);
    return at < 0 ? err_os(e, "open mount point %s", rel) : mounts_attach_at(tree_fd, at, rel, e);
}

int mounts_place(int tree_fd, int dirfd, const char *rel, struct pale_err *e)
{
    return k_move_mount(tree_fd, "", dirfd, rel, MOVE_MOUNT_F_EMPTY_PATH) < 0 ? err_os(e, "attach a mount at %s", rel) : 0;
}

int mounts_make_private(struct pale_err *e)
{
    struct mount_attr a = {.propagation = MS_PRIVATE};
    return k_mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &a) < 0 ? err_os(e, "make mounts private") : 0;
}

int mounts_enter_root(int root_fd, struct pale_err *e)
{
    if (fchdir(root_fd) < 0 || k_pivot_root(".", ".") < 0)
        return err_os(e, "enter the box's root");
    if (umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
        return err_os(e, "let go of the host's root");
    return 0;
}
