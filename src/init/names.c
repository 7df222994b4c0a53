/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the builtins that change names.
 *
 * How it works: as rename(2), mkdir(2) and unlink(2) do, and as the box's own programs could. Other processes of the box may swap
 * what stands at a name while a tree is removed; base/fd goes by descriptors and single names and follows no link, so they can
 * only make it fail, or remove less. */
#include "init/names.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "init/builtin.h"

#define NO_REPLACE 1u /* RENAME_NOREPLACE, which not every libc names */

int names_rename_new(int from_fd, const char *from, int to_fd, const char *to)
{
    return (int)syscall(SYS_renameat2, from_fd, from, to_fd, to, NO_REPLACE);
}

/* Makes a folder unless there is one, which need not be where we could make it. */
static int make_one(const char *path)
{
    struct stat st;
    if (mkdir(path, 0755) == 0)
        return 0;
    int os = errno;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return 0;
    errno = os;
    return -1;
}

int names_make_parents(const char *path)
{
    char part[PATH_BYTES_MAX];
    size_t n = strlen(path);
    if (n >= sizeof(part))
        return errno = ENAMETOOLONG, -1;
    memcpy(part, path, n + 1);
    for (size_t i = 1; i < n; i++) {
        if (part[i] != '/' || part[i - 1] == '/')
            continue;
        part[i] = 0;
        if (make_one(part) < 0)
            return -1;
        part[i] = '/';
    }
    return make_one(path);
}

int names_mkdir(const struct msg_exec *m)
{
    const char *path = m->argv[1];
    return (m->argc == 3 ? names_make_parents(path) : mkdir(path, 0755)) < 0 ? builtin_fail_os("make folder", path) : 0;
}

int names_move(const struct msg_exec *m)
{
    const char *from = m->argv[1], *to = m->argv[2];
    struct pale_err e;
    int r = m->argc == 4 ? names_rename_new(AT_FDCWD, from, AT_FDCWD, to) : rename(from, to);
    if (r == 0)
        return 0;
    struct stat st;
    bool apart = errno == EXDEV && lstat(from, &st) == 0;
    if (apart)
        err_set(&e, PALE_BAD_INPUT, "move %.250s to %.250s: they lie on different mounts of the box; copy it, then remove the original",
                from, to);
    else
        err_os(&e, "move %.250s to %.250s", from, to);
    return builtin_fail(&e);
}

static bool ends_upwards(const char *path)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    return n >= 2 && path[n - 1] == '.' && path[n - 2] == '.' && (n == 2 || path[n - 3] == '/');
}

int names_remove(const struct msg_exec *m)
{
    const char *path = m->argv[1];
    struct pale_err e;
    if (unlink(path) == 0)
        return 0;
    if (errno != EISDIR)
        return builtin_fail_os("remove", path);
    /* A mount point, "/" and "." say here that they cannot go, before anything in them has gone. */
    if (rmdir(path) == 0)
        return 0;
    if (m->argc == 2 || (errno != ENOTEMPTY && errno != EEXIST))
        return builtin_fail_os("remove", path);
    if (ends_upwards(path))
        return errno = EINVAL, builtin_fail_os("remove", path);
    return fd_remove_tree(AT_FDCWD, path, &e) < 0 ? builtin_fail(&e) : 0;
}
