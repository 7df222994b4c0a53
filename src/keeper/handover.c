/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what one keeper of a box leaves to the next: when a box's layers are changed its wall is built anew, and whoever asks about a
 * command that had ended by then is told as before.
 *
 * The file is of our own making, in the box's state folder: three frames for each command (what it was, what it was asked with, what it
 * printed), read strictly, and removed once the next keeper serves: until then it says that the box is on its way back. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "box/life.h"
#include "keeper/keeper.h"
#include "wire/frame.h"

#define HANDOVER_MAX (16u << 20) /* JOBS_REMEMBERED of at most SPOOL_MEMORY and a record each, many times over */

enum { HAND_COUNTS = 1, HAND_JOB, HAND_ASKED, HAND_PRINTED };

static void put(struct buf *b, uint8_t type, const void *p, size_t n)
{
    uint8_t head[FRAME_HEAD];
    frame_put_head(head, type, 0, (uint32_t)n);
    buf_add(b, head, sizeof(head));
    buf_add(b, p, n);
}

static void put_job(struct buf *b, const struct kjob *j)
{
    static uint8_t mem[8192];
    struct record_writer w;
    struct msg_job m;
    size_t n = 0;
    work_tell(j, &m);
    record_start(&w, mem, sizeof(mem));
    msg_job_write(&m, &w);
    if (w.full)
        return;
    put(b, HAND_JOB, mem, w.len);
    put(b, HAND_ASKED, j->asked, sizeof(j->asked));
    struct spool_kept kept = spool_keep(&j->log, mem + sizeof(kept), &n);
    memcpy(mem, &kept, sizeof(kept));
    put(b, HAND_PRINTED, mem, sizeof(kept) + n);
}

void handover_write(struct keeper *k)
{
    own_buf b = {0};
    const uint64_t counts[] = {k->next_job, k->ended};
    own_fd dir = open(k->state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    buf_init(&b, HANDOVER_MAX);
    put(&b, HAND_COUNTS, counts, sizeof(counts));
    for (const struct kjob *j = k->jobs; j; j = j->next)
        if (j->lasts)
            put_job(&b, j);
    if (dir >= 0 && !b.failed)
        (void)!fd_replace_file(dir, LIFE_HANDOVER, b.data, b.len, 0600, false, NULL);
}

static void copy_text(char *ret, size_t cap, const char *text)
{
    snprintf(ret, cap, "%s", text);
}

static bool take_job(struct keeper *k, const struct frame *job, const struct frame *asked, const struct frame *printed)
{
    struct msg_job m;
    struct spool_kept kept;
    if (!msg_job_parse(job->data, job->len, &m) || m.state != JOB_ENDED || asked->len != SHA256_BYTES || printed->len < sizeof(kept))
        return false;
    struct kjob *j = calloc(1, sizeof(*j));
    if (!j)
        return false;
    *j = (struct kjob){.k = k,
                       .id = m.id,
                       .chan = JOBS_MAX,
                       .state = JOB_ENDED,
                       .detached = m.detached,
                       .lasts = true,
                       .tty = m.tty,
                       .started_unix_ms = m.started_unix_ms,
                       .pid = m.pid,
                       .out_bytes = m.out_bytes,
                       .dropped_bytes = m.dropped_bytes,
                       .in_bytes = m.in_bytes,
                       .in_ended = true};
    memcpy(j->asked, asked->data, sizeof(j->asked));
    copy_text(j->key, sizeof(j->key), m.key);
    copy_text(j->command, sizeof(j->command), m.command);
    copy_text(j->message, sizeof(j->message), m.message);
    j->result = msg_job_result(&m);
    j->result.message = j->message;
    memcpy(&kept, printed->data, sizeof(kept));
    spool_init(&j->log, k->state_dir, j->id, JOB_LOG_MAX);
    if (!spool_resume(&j->log, &kept, printed->data + sizeof(kept), printed->len - sizeof(kept))) {
        spool_done(&j->log);
        free(j);
        return false;
    }
    *(k->last_job ? &k->last_job->next : &k->jobs) = j;
    k->last_job = j;
    k->job_count++;
    return true;
}

/* The frames in their order; whatever does not fit ends the reading. */
static void take_all(struct keeper *k, const uint8_t *p, size_t n)
{
    struct frame f[3];
    size_t used, at = 0;
    uint64_t counts[2];
    if (frame_parse(p, n, &f[0], &used) != 1 || f[0].type != HAND_COUNTS || f[0].len != sizeof(counts))
        return;
    memcpy(counts, f[0].data, sizeof(counts));
    k->next_job = counts[0];
    k->ended = counts[1];
    at = used;
    while (at < n) {
        for (uint8_t i = 0; i < 3; i++, at += used)
            if (frame_parse(p + at, n - at, &f[i], &used) != 1 || f[i].type != HAND_JOB + i)
                return;
        if (!take_job(k, &f[0], &f[1], &f[2]))
            return;
    }
}

static bool is_log_of(const struct keeper *k, const char *name)
{
    char want[64];
    for (const struct kjob *j = k->jobs; j; j = j->next) {
        snprintf(want, sizeof(want), "job-%llu.log", (unsigned long long)j->id);
        if (strcmp(want, name) == 0)
            return true;
    }
    return false;
}

void handover_read(struct keeper *k)
{
    DIR *d = opendir(k->state_dir);
    own_buf b = {0};
    if (!d)
        return;
    own_fd fd = openat(dirfd(d), LIFE_HANDOVER, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    buf_init(&b, HANDOVER_MAX);
    if (fd >= 0 && fd_read_all(fd, &b, NULL) == 0)
        take_all(k, b.data, b.len);
    for (const struct dirent *en; (en = readdir(d));)
        if (strncmp(en->d_name, "job-", 4) == 0 && !is_log_of(k, en->d_name))
            unlinkat(dirfd(d), en->d_name, 0);
    closedir(d);
}

void handover_done(const struct keeper *k)
{
    char path[PATH_BYTES_MAX];
    snprintf(path, sizeof(path), "%s/" LIFE_HANDOVER, k->state_dir);
    (void)unlink(path);
}
