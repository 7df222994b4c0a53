/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the logs of detached jobs: files of frames, so that both streams come back apart. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "keeper/keeper.h"
#include "wire/frame.h"

int joblog_open(struct kjob *j, struct pale_err *e)
{
    char path[PATH_BYTES_MAX];
    const char *dir = j->k->state_dir;
    if (!dir)
        return err_set(e, PALE_BAD_INPUT, "a one-shot box has no detached commands; make one with `pale create`");
    snprintf(path, sizeof(path), "%s/job-%llu.log", dir, (unsigned long long)j->id);
    j->log_fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    return j->log_fd < 0 ? err_os(e, "open the job's log %s", path) : 0;
}

void joblog_add(struct kjob *j, bool is_err, const uint8_t *p, size_t n)
{
    uint8_t head[FRAME_HEAD];
    if (j->log_fd < 0)
        return;
    if (j->log_bytes + sizeof(head) + n > JOB_LOG_MAX) {
        j->dropped_bytes += n;
        return;
    }
    frame_put_head(head, is_err ? TELL_STDERR : TELL_STDOUT, 0, (uint32_t)n);
    if (!fd_write_full(j->log_fd, head, sizeof(head)) || !fd_write_full(j->log_fd, p, n)) {
        j->dropped_bytes += n;
        own_close(&j->log_fd); /* the disk is full; the job goes on */
        return;
    }
    j->log_bytes += sizeof(head) + n;
    for (struct client *c = j->k->clients; c; c = c->next)
        if (c->waiting == j && c->following && c->out.len == 0)
            joblog_send(c);
}

void joblog_send(struct client *c)
{
    struct kjob *j = c->waiting;
    uint8_t block[16384];
    ssize_t n = 0;
    if (!j->detached) {
        client_error(c, PALE_BAD_INPUT, "only detached commands have logs");
        return;
    }
    while (j->log_fd >= 0 && c->out.len < STREAM_WINDOW && (n = pread(j->log_fd, block, sizeof(block), (off_t)c->log_at)) > 0) {
        c->log_at += (uint64_t)n;
        /* The file is made of frames already; the client reads them as they are. */
        buf_add(&c->out, block, (size_t)n);
    }
    /* The window was full before the log's end: the rest goes when the client has taken this. */
    c->log_more = n > 0;
    if (!c->log_more && (j->state == JOB_ENDED || !c->log_lasts))
        client_tell_end(c, j);
    else
        client_flush(c);
}
