/* SPDX-License-Identifier: Apache-2.0 */
/* Owns wholes. */
#include "init/whole.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "init/builtin.h"
#include "init/memory.h"
#include "wire/fileline.h"

static int ended_early(const char *what, struct pale_err *e)
{
    return err_set(e, PALE_GONE, "%s: the input ended early; nothing was changed", what);
}

int whole_input(struct whole *w, size_t most, const char *what, struct pale_err *e)
{
    uint8_t head[FILE_PIECE_HEAD];
    char *at = memory_map(most + 1, e);
    size_t len = 0;
    if (!at)
        return -(int)e->code;
    for (;;) {
        if (fd_read_full(0, head, sizeof(head)) != (ssize_t)sizeof(head))
            return ended_early(what, e);
        uint32_t n = file_piece_length(head);
        if (n > most - len)
            return err_set(e, PALE_LIMIT, "%s: more than %zu bytes", what, most);
        if (n == 0)
            break;
        if (fd_read_full(0, at + len, n) != (ssize_t)n)
            return ended_early(what, e);
        len += n;
    }
    w->at = at;
    w->len = len;
    return 0;
}

/* The kernel knows the way by which it was found, if it is still there. */
static int find_real(struct whole *w, int fd, const char *path, struct pale_err *e)
{
    char self[32];
    struct stat now;
    snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(self, w->real, sizeof(w->real) - 1);
    if (n <= 0 || w->real[0] != '/' || (size_t)n == sizeof(w->real) - 1)
        return err_set(e, PALE_UNSUPPORTED, "%.400s: where it stands cannot be told", path);
    w->real[n] = 0;
    if (lstat(w->real, &now) < 0 || now.st_dev != w->st.st_dev || now.st_ino != w->st.st_ino)
        return err_set(e, PALE_BUSY, "%.400s: somebody changed it meanwhile; read it again", path);
    return 0;
}

int whole_file(struct whole *w, const char *path, size_t most, struct pale_err *e)
{
    struct stat st = {0};
    own_fd fd = builtin_open_plain(path, &st);
    if (fd < 0)
        return err_os(e, "open %.400s", path);
    char *at = memory_map(most + 1, e);
    if (!at)
        return -(int)e->code;
    ssize_t n = fd_read_full(fd, at, most + 1);
    if (n < 0)
        return err_os(e, "read %.400s", path);
    if ((size_t)n > most)
        return err_set(e, PALE_LIMIT, "%.400s: more than %zu bytes; a program in the box can change it", path, most);
    w->at = at;
    w->len = (size_t)n;
    w->st = st;
    return find_real(w, fd, path, e);
}
