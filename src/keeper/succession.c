/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the words between the one who changes a box and its next keeper. */
#include "keeper/succession.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/handing.h"
#include "base/own.h"
#include "box/stack.h"
#include "wire/frame.h"

#define STARTER 3 /* the descriptor */

/* A list takes a disk's time to write. The box cannot wait for ever for one who is stopped, or hangs. */
#define PATIENCE_S 30

/* One word with its text, and the descriptor that came along or -1. */
static int hear(uint8_t word, struct buf *text, int *ret_fd, struct pale_err *e)
{
    uint8_t head[FRAME_HEAD];
    own_fd fd = -1;
    size_t whole = 0;
    if (handing_receive(STARTER, head, sizeof(head), &fd, MSG_WAITALL) == (ssize_t)sizeof(head) && head[4] == word)
        whole = frame_whole(head);
    size_t n = whole ? whole - FRAME_HEAD : 0;
    if (!whole || (n && (!text || !buf_reserve(text, n + 1) || fd_read_full(STARTER, text->data, n) != (ssize_t)n)))
        return err_set(e, PALE_GONE, "whoever started the keeper does not need it any more");
    if (text)
        text->len = n;
    if (ret_fd)
        *ret_fd = take_fd(&fd);
    return 0;
}

int succession_list(struct buf *ret, struct pale_err *e)
{
    return hear(ASK_LIST, ret, NULL, e);
}

/* Is it the file, and does whoever gave it to us hold the lock, or nobody? */
static int check_lock(const struct keeper *k, int fd, struct pale_err *e)
{
    char path[PATH_BYTES_MAX];
    struct stat given, real;
    snprintf(path, sizeof(path), "%s/lock", k->state_dir);
    if (fstat(fd, &given) < 0 || lstat(path, &real) < 0 || given.st_ino != real.st_ino || given.st_dev != real.st_dev)
        return err_set(e, PALE_PROTOCOL, "what came along with the box is not its lock %s", path);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK ? err_set(e, PALE_BUSY, "another keeper has this box") : err_os(e, "lock %s", path);
    return 0;
}

int succession_lock(const struct keeper *k, int *ret_fd, struct pale_err *e)
{
    static const struct timeval patience = {.tv_sec = PATIENCE_S};
    own_fd fd = -1;
    int r = hear(ASK_GO, NULL, &fd, e);
    if (r == 0)
        r = check_lock(k, fd, e);
    if (r == 0 && setsockopt(STARTER, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0)
        r = err_os(e, "set how long to wait for the list of layers");
    if (r == 0)
        *ret_fd = take_fd(&fd);
    return r;
}

int succession_kept(struct pale_err *e)
{
    return hear(ASK_KEPT, NULL, NULL, e);
}

int succession_saved(const struct keeper *k, struct pale_err *e)
{
    char now[SHA256_HEX];
    int r = hear(ASK_SAVED, NULL, NULL, e);
    if (r < 0 || !k->ahead)
        return r;
    if ((r = stack_digest(k->state_dir, now, e)) < 0)
        return r;
    return strcmp(now, k->list_digest) == 0
               ? 0
               : err_set(e, PALE_BUSY, "the layers of box %s have become others while it was started; try again", k->name);
}
