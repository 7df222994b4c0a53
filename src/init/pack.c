/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the builtins that copy trees. */
#include "init/pack.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/bundle.h"
#include "base/limits.h"
#include "base/own.h"
#include "init/builtin.h"

int pack_out(const struct msg_exec *m)
{
    struct bundle_count count;
    struct pale_err e;
    int r = bundle_send(1, AT_FDCWD, m->argv[1], true, &count, &e);
    if (r == 0 && count.skipped)
        dprintf(2, "%llu entries were no files, folders or symlinks and were left out\n", (unsigned long long)count.skipped);
    if (r == 0 && count.changed)
        dprintf(2, "%llu files grew or shrank while they were read\n", (unsigned long long)count.changed);
    return r < 0 ? builtin_fail(&e) : 0;
}

int pack_in(const struct msg_exec *m)
{
    char dir[PATH_BYTES_MAX];
    const char *path = m->argv[1], *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    struct bundle_count count;
    struct pale_err e;
    snprintf(dir, sizeof(dir), "%.*s", slash ? (slash == path ? 1 : (int)(slash - path)) : 1, slash ? path : ".");
    own_fd at = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (at < 0)
        return err_os(&e, "open folder %s", dir), builtin_fail(&e);
    return bundle_receive(0, at, name, false, &count, &e) < 0 ? builtin_fail(&e) : 0;
}
