/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the way from a job that lasts to those who read its output, now or later. */
#include <string.h>

#include "keeper/keeper.h"
#include "wire/frame.h"

#define LOG_LOOK_BYTES (1u << 20)

int joblog_open(struct kjob *j, struct pale_err *e)
{
    if (!j->k->state_dir)
        return err_set(e, PALE_BAD_INPUT, "a one-shot box has no detached commands; make one with `pale create`");
    spool_init(&j->log, j->k->state_dir, j->id, JOB_LOG_MAX);
    return 0;
}

/* The job whose output the client reads from its log. */
static struct kjob *source_of(const struct client *c)
{
    if (c->job)
        return c->job->lasts ? c->job : NULL;
    return c->following ? c->waiting : NULL;
}

/* Is there anybody who reads it, but the one who has read it to its end? */
static bool is_read(const struct kjob *j)
{
    for (const struct client *c = j->k->clients; c; c = c->next)
        if (source_of(c) == j)
            return true;
    return false;
}

void joblog_release(struct kjob *j)
{
    spool_drop(&j->log);
}

static uint64_t stored(const struct keeper *k)
{
    uint64_t n = 0;
    for (const struct kjob *j = k->jobs; j; j = j->next)
        n += spool_stored(&j->log);
    return n;
}

/* The longest log among those that have ended, or run; being read, or not. */
static struct kjob *longest(const struct keeper *k, bool ended, bool read)
{
    struct kjob *found = NULL;
    for (struct kjob *j = k->jobs; j; j = j->next)
        if ((j->state == JOB_ENDED) == ended && is_read(j) == read && spool_stored(&j->log) > (found ? spool_stored(&found->log) : 0))
            found = j;
    return found;
}

/* The oldest that has ended and that nobody reads goes first; then, of commands that run, the longest. */
static struct kjob *victim(const struct keeper *k)
{
    for (struct kjob *j = k->jobs; j; j = j->next)
        if (j->state == JOB_ENDED && spool_stored(&j->log) > 0 && !is_read(j))
            return j;
    struct kjob *j = longest(k, false, false);
    if (!j)
        j = longest(k, true, true);
    return j ? j : longest(k, false, true);
}

/* Makes room for n more bytes of a job whose log has grown by less than the bound. */
static void make_room(struct kjob *j, size_t n)
{
    struct keeper *k = j->k;
    /* Looked at once in a while: a log grows by at most so much between two looks. */
    k->log_growth += n;
    if (k->log_growth < LOG_LOOK_BYTES)
        return;
    k->log_growth = 0;
    for (struct kjob *v; stored(k) > JOB_LOGS_MAX - LOG_LOOK_BYTES && (v = victim(k));)
        spool_drop(&v->log);
}

void joblog_add(struct kjob *j, bool is_err, const uint8_t *p, size_t n)
{
    make_room(j, n + FRAME_HEAD);
    if (!spool_add(&j->log, is_err ? TELL_STDERR : TELL_STDOUT, p, n)) {
        j->dropped_bytes += n; /* the disk is full; the job goes on */
        return;
    }
    for (struct client *c = j->k->clients, *next; c; c = next) {
        next = c->next;
        if (source_of(c) == j && c->out.len == 0)
            joblog_send(c);
    }
}

void joblog_begin(struct client *c, const struct kjob *j, uint64_t offset)
{
    spool_seek(&j->log, offset, &c->log_at);
    client_tell_u64(c, TELL_OFFSET, c->log_at.bytes);
}

void joblog_send(struct client *c)
{
    static uint8_t block[FRAME_HEAD + FRAME_PAYLOAD_MAX];
    struct kjob *j = source_of(c);
    uint64_t missed;
    size_t n = 0;
    if (!j)
        return;
    do {
        n = spool_read(&j->log, &c->log_at, block, sizeof(block), &missed);
        if (missed)
            client_tell_u64(c, TELL_MISSED, missed);
        /* The log is made of frames already; the client reads them as they are. */
        buf_add(&c->out, block, n);
    } while (n > 0 && c->out.len < STREAM_WINDOW);
    /* The window was full before the log's end: the rest goes when the client has taken this. */
    c->log_more = n > 0;
    if (!c->log_more && j->state == JOB_ENDED && c->job == j)
        work_tell_result(c, j);
    else if (!c->log_more && !c->job && (j->state == JOB_ENDED || !c->log_lasts))
        client_tell_end(c, j);
    else
        client_flush(c);
}
