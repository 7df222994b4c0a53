/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the opening of host folders and files that a box is shown. */
#include "tier/lend.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/own.h"
#include "base/weak.h"
#include "confine/mounts.h"
#include "confine/weaken.h"

/* Opens a host path that the operator named. It was made canonical when the policy was; if a symlink stands in it now,
 * somebody has put it there since. */
static int open_host(const char *path, struct pale_err *e)
{
    own_fd root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd = root < 0                ? -1
             : weak_word("nofollow") ? open(path, O_PATH | O_CLOEXEC)
                                     : fd_open_beneath(root, path[1] ? path + 1 : ".", O_PATH, 0);
    if (fd < 0 && errno == ELOOP)
        return err_set(e, PALE_DENIED, "%s: a symlink now stands in this path; make the box again if that is meant", path);
    return fd < 0 ? err_os(e, "open %s", path) : fd;
}

int lend_clone(const struct wall_plan *plan, const char *path, bool writable, int idmap_fd, bool *ret_dir, struct pale_err *e)
{
    own_fd at = open_host(path, e);
    if (at < 0)
        return at;
    struct stat st;
    if (fstat(at, &st) < 0)
        return err_os(e, "look at %s", path);
    if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
        return err_set(e, PALE_BAD_INPUT, "%s: only folders and plain files can be shown to a box", path);
    bool ro = !writable && !is_weak(plan->weaken, WEAKEN_READONLY);
    own_fd tree = mounts_clone_fd(at, (ro ? MOUNTS_RO : 0) | MOUNTS_RECURSIVE, e);
    if (tree < 0)
        return err_prefix(e, "%s", path);
    if (idmap_fd >= 0) {
        int r = mounts_idmap(tree, idmap_fd, e);
        if (r < 0)
            return err_prefix(e, "%s", path);
    }
    if (ret_dir)
        *ret_dir = S_ISDIR(st.st_mode);
    return take_fd(&tree);
}
