/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the paths of an archive's entries. */
#include "net/tarpath.h"

#include <string.h>

#include "base/bundlehead.h"

/* A step of a path that is no name: why? */
static int refuse_step(const char *step, size_t n, struct pale_err *e)
{
    if (n > BUNDLE_NAME_MAX)
        return err_set(e, PALE_LIMIT, "its name is longer than %u bytes", BUNDLE_NAME_MAX);
    if (n == 0)
        return err_set(e, PALE_BAD_INPUT, "its path has an empty step");
    return err_set(e, PALE_BAD_INPUT, "its path has the step %.*s", (int)n, step);
}

/* The steps of a path below the top, each checked; there may be none. */
static int check_steps(const char *path, size_t len, bool is_folder, struct pale_err *e)
{
    size_t folders = is_folder ? 1 : 0; /* the top, and every step of a folder's path, but not a leaf's last */
    for (size_t at = 0, n; len > 0 && at <= len; at += n + 1, folders++) {
        const char *slash = memchr(path + at, '/', len - at);
        n = slash ? (size_t)(slash - path) - at : len - at;
        if (!bundle_is_name(path + at, n))
            return refuse_step(path + at, n, e);
    }
    if (folders > BUNDLE_DEPTH_MAX)
        return err_set(e, PALE_LIMIT, "it lies deeper than %d folders", BUNDLE_DEPTH_MAX);
    return 0;
}

int tarpath_clean(const char *p, bool is_folder, char ret[PATH_BYTES_MAX], struct pale_err *e)
{
    if (p[0] == '/')
        return err_set(e, PALE_BAD_INPUT, "its path is absolute, and only those below the archive's top are taken");
    bool dotted = p[0] == '.' && (p[1] == '/' || p[1] == 0);
    p += dotted ? 1 + (p[1] == '/') : 0;
    size_t n = strlen(p);
    if (is_folder && n > 0 && p[n - 1] == '/')
        n--;
    if (n == 0 && (!dotted || !is_folder))
        return err_set(e, PALE_BAD_INPUT, "it has no name");
    if (n == 0 && *p == '/')
        return refuse_step(p, 0, e);
    int r = check_steps(p, n, is_folder, e);
    if (r < 0)
        return r;
    memcpy(ret, p, n);
    ret[n] = 0;
    return 0;
}
