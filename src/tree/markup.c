/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the reading of a list of marks, and the making of them. */
#include "tree/markup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/own.h"
#include "base/quote.h"
#include "net/cargo.h"
#include "net/tarhead.h"
#include "tree/view.h"

#define BLOCK (2 * PATH_BYTES_MAX)

/* Makes one mark in or on the folder: name is what is gone from it; NULL: it hides what lies below. */
static int put(int folder_fd, const char *name, struct pale_err *e)
{
    char at[32];
    struct stat st;
    snprintf(at, sizeof(at), "/proc/self/fd/%d", folder_fd);
    if (fstat(folder_fd, &st) < 0)
        return err_os(e, "look at its folder");
    /* A folder that its owner has closed takes neither names nor attributes. By name it can be opened to him and no more. */
    bool closed = (st.st_mode & 0700) != 0700;
    if (closed && chmod(at, 0700) < 0)
        return err_os(e, "open its folder");
    own_fd folder = openat(folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return err_os(e, "open its folder");
    int r = name ? mknodat(folder, name, S_IFCHR | 0600, makedev(0, 0)) : fsetxattr(folder, "user.overlay.opaque", "y", 1, XATTR_CREATE);
    int res = r < 0 ? err_os(e, "make the mark") : 0;
    const struct timespec times[2] = {st.st_atim, st.st_mtim};
    if (res == 0 && (futimens(folder, times) < 0 || (closed && fchmod(folder, st.st_mode & 07777) < 0)))
        res = err_os(e, "give its folder mode and time again");
    return res;
}

static int apply(int root_fd, char what, const char *path, struct pale_err *e)
{
    char folder[PATH_BYTES_MAX];
    size_t n = strlen(path), up = tar_parent(path, n);
    if ((what != CARGO_MARK_GONE && what != CARGO_MARK_OPAQUE) || !view_is_path(path) || !cargo_lies_on(path) || up == 0)
        return err_set(e, PALE_CORRUPT, "no mark can stand there");
    size_t len = what == CARGO_MARK_GONE ? up : n;
    memcpy(folder, path, len);
    folder[len] = 0;
    own_fd fd = fd_open_beneath(root_fd, folder, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
    return fd < 0 ? err_os(e, "open its folder") : put(fd, what == CARGO_MARK_GONE ? path + up + 1 : NULL, e);
}

/* Applies the whole marks of a block and says how many bytes they are. */
static int apply_all(int root_fd, const char *p, size_t n, size_t *ret_used, unsigned *left, struct pale_err *e)
{
    char shown[240];
    const char *end;
    for (*ret_used = 0; *ret_used < n && (end = memchr(p + *ret_used, 0, n - *ret_used)); *ret_used = (size_t)(end - p) + 1) {
        const char *at = p + *ret_used;
        if ((*left)-- == 0)
            return err_set(e, PALE_LIMIT, "there are more than %u marks", CARGO_ENTRIES_MAX);
        int r = end == at ? err_set(e, PALE_CORRUPT, "it is empty") : apply(root_fd, at[0], at + 1, e);
        if (r < 0)
            return err_prefix(e, "the mark %s", quote_into(shown, sizeof(shown), at, strlen(at)));
    }
    return 0;
}

int markup_apply(int root_fd, int list_fd, struct pale_err *e)
{
    own_mem char *block = malloc(BLOCK);
    size_t len = 0, used = 0;
    unsigned left = CARGO_ENTRIES_MAX;
    if (!block)
        return err_nomem(e);
    for (;;) {
        ssize_t n = fd_read_full(list_fd, block + len, BLOCK - len);
        if (n < 0)
            return err_os(e, "read the list of marks");
        len += (size_t)n;
        int r = apply_all(root_fd, block, len, &used, &left, e);
        if (r < 0)
            return r;
        if (len > 0 && used == 0)
            return err_set(e, PALE_CORRUPT, "the list of marks is damaged");
        len -= used;
        memmove(block, block + used, len);
        if (n == 0 && len == 0)
            return 0;
    }
}
