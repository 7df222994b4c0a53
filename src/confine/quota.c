/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the calls about project quotas. */
#include "confine/quota.h"

#include <errno.h>
#include <linux/dqblk_xfs.h>
#include <linux/fs.h>
#include <linux/quota.h>
#include <sys/ioctl.h>

#include "confine/kernel.h"

#define BLOCK_BYTES 1024u /* what limits on bytes are counted in, whatever the file system's own blocks are */
#define SOME_PROJECT 1u

static int command(int fd, int what, uint32_t project, void *arg)
{
    return k_quotactl_fd(fd, QCMD(what, PRJQUOTA), project, arg);
}

int quota_can_hold(int fd, struct pale_err *e)
{
    const unsigned needed = FS_QUOTA_PDQ_ACCT | FS_QUOTA_PDQ_ENFD;
    struct fs_quota_stat s = {0};
    struct if_dqblk some;
    int r = command(fd, Q_XGETQSTAT, 0, &s), os = errno;
    if (r < 0 && os != ENOSYS && os != ESRCH && os != ENOTTY && os != EINVAL && os != EOPNOTSUPP)
        return err_os(e, "ask for the quotas of the file system");
    if (r < 0 || (s.qs_flags & needed) != needed)
        return err_set(e, PALE_UNSUPPORTED, "no project quotas are in force on the file system of the box's files");
    if (command(fd, Q_GETQUOTA, SOME_PROJECT, &some) < 0 && errno == EPERM)
        return err_set(e, PALE_UNSUPPORTED, "only the host's root can give a folder a quota");
    return 0;
}

static void read_block(const struct if_dqblk *b, struct quota_state *ret)
{
    *ret = (struct quota_state){
        .used = {.bytes = b->dqb_curspace, .files = b->dqb_curinodes},
        .limit = {.bytes = b->dqb_bhardlimit * BLOCK_BYTES, .files = b->dqb_ihardlimit},
    };
}

int quota_look(int fd, uint32_t project, struct quota_state *ret, struct pale_err *e)
{
    struct if_dqblk b = {0};
    /* XFS has no entry for a project that it has never seen. */
    if (command(fd, Q_GETQUOTA, project, &b) < 0 && errno != ENOENT)
        return err_os(e, "look at project %u", project);
    read_block(&b, ret);
    return 0;
}

int quota_next(int fd, uint32_t from, uint32_t *ret_project, struct quota_state *ret, struct pale_err *e)
{
    struct if_nextdqblk n = {0};
    if (command(fd, Q_GETNEXTQUOTA, from, &n) < 0) {
        if (errno == ENOENT || errno == ESRCH)
            return err_set(e, PALE_NOT_FOUND, "no project from %u on", from);
        return err_os(e, "look for projects from %u on", from);
    }
    struct if_dqblk b = {.dqb_bhardlimit = n.dqb_bhardlimit,
                         .dqb_curspace = n.dqb_curspace,
                         .dqb_ihardlimit = n.dqb_ihardlimit,
                         .dqb_curinodes = n.dqb_curinodes};
    read_block(&b, ret);
    *ret_project = n.dqb_id;
    return 0;
}

int quota_limit(int fd, uint32_t project, const struct quota_amount *most, struct pale_err *e)
{
    struct quota_state is = {0};
    struct if_dqblk b = {
        .dqb_bhardlimit = most->bytes / BLOCK_BYTES,
        .dqb_ihardlimit = most->files,
        .dqb_valid = QIF_LIMITS,
    };
    if (command(fd, Q_SETQUOTA, project, &b) < 0)
        return err_os(e, "limit project %u", project);
    int r = quota_look(fd, project, &is, e);
    if (r < 0)
        return r;
    if (is.limit.bytes != most->bytes / BLOCK_BYTES * BLOCK_BYTES || is.limit.files != most->files)
        return err_set(e, PALE_UNSUPPORTED, "the file system did not keep the limit it was given");
    return 0;
}

int quota_marked(int fd, uint32_t *ret, struct pale_err *e)
{
    struct fsxattr x = {0};
    *ret = 0;
    if (ioctl(fd, FS_IOC_FSGETXATTR, &x) < 0)
        return errno == ENOTTY || errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL
                   ? 0
                   : err_os(e, "look which project a folder belongs to");
    *ret = x.fsx_xflags & FS_XFLAG_PROJINHERIT ? x.fsx_projid : 0;
    return 0;
}

int quota_mark(int fd, uint32_t project, struct pale_err *e)
{
    struct fsxattr x = {0};
    uint32_t is = 0;
    if (ioctl(fd, FS_IOC_FSGETXATTR, &x) < 0)
        return err_os(e, "look which project a folder belongs to");
    x.fsx_projid = project;
    x.fsx_xflags = project ? x.fsx_xflags | FS_XFLAG_PROJINHERIT : x.fsx_xflags & ~(uint32_t)FS_XFLAG_PROJINHERIT;
    if (ioctl(fd, FS_IOC_FSSETXATTR, &x) < 0)
        return err_os(e, "give a folder to project %u", project);
    int r = quota_marked(fd, &is, e);
    if (r == 0 && is != project)
        r = err_set(e, PALE_UNSUPPORTED, "the file system did not keep the project of a folder");
    return r;
}
