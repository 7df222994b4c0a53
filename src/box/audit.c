/* SPDX-License-Identifier: Apache-2.0 */
/* Appends to an audit log, and writes down what is found to be wrong with its end when it is opened. */
#include "box/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/number.h"
#include "base/own.h"
#include "base/path.h"
#include "base/weak.h"
#include "box/audit_head.h"
#include "box/audit_tail.h"

/* A record of what has happened already is lost if it cannot be written, so a passing trouble is waited out. */
#define WRITE_TRIES 3

/* A log of no more records may never have been on the disk. */
#define YOUNG_RECORDS 8

/* One that could not be written is behind the log, which is no loss. */
static void write_head(struct audit *a)
{
    struct audit_head_line l = {.seq = a->seq, .gaps = a->gaps, .running = a->running};
    memcpy(l.digest, a->last, sizeof(l.digest));
    audit_head_write(&l, a->head);
    if (a->head_len > AUDIT_HEAD_BYTES)
        (void)!ftruncate(a->head_fd, AUDIT_HEAD_BYTES);
    for (size_t at = 0; at < AUDIT_HEAD_BYTES;) {
        ssize_t n = pwrite(a->head_fd, a->head + at, AUDIT_HEAD_BYTES - at, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return;
        at += (size_t)n;
    }
}

/* A longer one is no line of ours: its end is read too. */
static int read_head(struct audit *a, struct pale_err *e)
{
    memset(a->head, 0, sizeof(a->head));
    a->head_len = 0;
    while (a->head_len < sizeof(a->head)) {
        ssize_t n = pread(a->head_fd, a->head + a->head_len, sizeof(a->head) - a->head_len, (off_t)a->head_len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_os(e, "read the head of the audit log");
        if (n == 0)
            break;
        a->head_len += (size_t)n;
    }
    return 0;
}

/* Opens one of the pair, which lies in a folder of the user's own: whatever else stands there was put there. */
static int open_plain(const char *path, int flags, struct pale_err *e)
{
    struct stat st;
    own_fd fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | flags, 0600);
    if (fd < 0 && errno != ELOOP && errno != EISDIR && errno != ENXIO)
        return err_os(e, "open the audit log %s", path);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return err_set(e, PALE_CORRUPT, "%s is no plain file; move it away, and the log goes on with a record that tells of it", path);
    if (st.st_uid != geteuid() || (st.st_mode & 022))
        return err_set(e, PALE_CORRUPT, "%s must belong to you and be writable by nobody else; `chmod 600` it if you trust what it says",
                       path);
    return take_fd(&fd);
}

static int write_line(struct audit *a, struct pale_err *e)
{
    ssize_t n = write(a->fd, a->line.data, a->line.len);
    if (n < 0)
        return err_os(e, "write the audit log");
    if (n == (ssize_t)a->line.len)
        return 0;
    /* The next record must not be glued to this half. */
    off_t end = lseek(a->fd, 0, SEEK_END);
    if (end < n || ftruncate(a->fd, end - n) < 0) {
        a->torn = true;
        return err_os(e, "take half a record back out of the audit log");
    }
    return err_set(e, PALE_NO_SPACE, "the audit log took only part of a record: No space left on device");
}

/* Writes a->line, of which the first `before` bytes belong to no record. */
static int append(struct audit *a, size_t before, struct pale_err *e)
{
    if (a->line.failed)
        return err_set(e, PALE_LIMIT, "an audit record is longer than %u bytes", AUDIT_RECORD_MAX);
    int r = write_line(a, e);
    for (int tries = 1; r < 0 && !a->torn && tries < WRITE_TRIES; tries++)
        r = write_line(a, e);
    if (r < 0)
        return r;
    a->lost = 0;
    a->must_exist = false; /* from here on its head tells */
    a->seq++;
    sha256_hex(a->line.data + before, a->line.len - before - 1, a->last);
    write_head(a);
    return 0;
}

static void begin_line(struct audit *a, const char *before, const char *event)
{
    char stamp[40];
    buf_clear(&a->line);
    buf_add_text(&a->line, before);
    json_start(&a->json, &a->line);
    json_begin_object(&a->json, NULL);
    json_u64(&a->json, "seq", a->seq + 1);
    json_text(&a->json, "time", clock_stamp(stamp, sizeof(stamp)));
    json_text(&a->json, "box", a->box);
    json_text(&a->json, "id", a->id);
    json_text(&a->json, "event", event);
    snprintf(a->event, sizeof(a->event), "%s", event);
}

static void end_line(struct audit *a)
{
    if (a->lost)
        json_u64(&a->json, "lost_before", a->lost);
    json_text(&a->json, "prev", a->last);
    json_end_object(&a->json);
    buf_add_text(&a->line, "\n");
}

/* After a crash in mid-write: close the cut line and say so. In one write: a line that is closed and not explained would look like
 * somebody's doing for ever. */
static int recover(struct audit *a, uint64_t torn, struct pale_err *e)
{
    begin_line(a, "\n", "audit.recovered");
    json_u64(&a->json, "torn_bytes", torn);
    end_line(a);
    return append(a, 1, e);
}

/* The record goes on behind the last number that was ever given, with the digest of what stood there: so the chain itself is open at this
 * place for ever, and no number is given twice. */
static int record_gap(struct audit *a, enum audit_gap gap, const struct audit_tail *t, const struct audit_witness *w, struct pale_err *e)
{
    const struct audit_head_line *h = &w->head;
    if (gap != AUDIT_GAP_HEAD && h->seq >= t->seq && h->seq > 0) {
        a->seq = h->seq;
        memcpy(a->last, h->digest, sizeof(a->last));
    }
    if (w->checkpoint > a->seq)
        a->seq = w->checkpoint;
    a->gaps = h->gaps + 1;
    begin_line(a, t->unended || t->torn_bytes ? "\n" : "", "audit.gap");
    json_text(&a->json, "what", audit_gap_name(gap));
    json_u64(&a->json, "missing", a->seq - t->seq);
    json_u64(&a->json, "kept", t->seq);
    if (t->torn_bytes)
        json_u64(&a->json, "torn_bytes", t->torn_bytes);
    end_line(a);
    return append(a, t->unended || t->torn_bytes ? 1 : 0, e);
}

/* Finds out where the log ends, and writes down what is wrong with that. */
static int catch_up(struct audit *a, struct pale_err *e)
{
    struct audit_tail t;
    struct audit_witness w = {.checkpoint = a->checkpoint, .must_exist = a->must_exist};
    enum audit_gap gap = AUDIT_GAP_NONE;
    int r = read_head(a, e);
    if (r == 0)
        r = audit_tail_read(a->fd, a->shared ? "" : a->id, &t, e);
    if (r < 0)
        return r;
    w.state = audit_head_parse(a->head, a->head_len, &w.head);
    if (r == 0 && !weak_word("audit-chain"))
        r = audit_tail_judge(a->fd, &t, &w, &gap, e);
    if (r < 0)
        return r;
    a->seq = t.seq;
    a->gaps = w.head.gaps;
    /* The head is one record behind if its writer was killed. */
    a->running = t.running < 0 || t.seq <= w.head.seq ? w.head.running : t.running == 1;
    memcpy(a->last, t.digest, sizeof(a->last));
    if (gap)
        return record_gap(a, gap, &t, &w, e);
    if (t.unended && write(a->fd, "\n", 1) != 1)
        return err_os(e, "write the audit log");
    if (t.torn_bytes)
        return recover(a, t.torn_bytes, e);
    /* Begun before its first record, so that a head without a word beside a log with records is nobody's accident. */
    if (!t.found && w.state != AUDIT_HEAD_GOOD)
        write_head(a);
    return 0;
}

/* How far the log had come when its last checkpoint was taken; a copy of it stands beside the log. */
static uint64_t last_checkpoint(const char *path)
{
    char beside[PATH_BYTES_MAX], text[SHA256_HEX + 32] = "";
    uint64_t seq = 0;
    const char *slash = strrchr(path, '/');
    int n = slash ? snprintf(beside, sizeof(beside), "%.*s/checkpoint", (int)(slash - path), path) : -1;
    own_fd fd = n < 0 || n >= (int)sizeof(beside) ? -1 : open(beside, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fd_read_full(fd, text, sizeof(text) - 1) <= 0)
        return 0;
    text[strcspn(text, " ")] = 0;
    return number_u64(text, UINT64_MAX, &seq) ? seq : 0;
}

/* A log of many boxes has no policy beside it that tells that it was begun: an empty file does. */
static int mark_begun(struct audit *a, const char *path, struct pale_err *e)
{
    char mark[PATH_BYTES_MAX];
    struct stat st;
    snprintf(mark, sizeof(mark), "%s.begun", path);
    int r = read_head(a, e);
    if (r < 0 || a->head[0])
        return r;
    if (flock(a->fd, LOCK_EX) < 0)
        return err_os(e, "lock the audit log");
    r = read_head(a, e);
    bool is_empty = r == 0 && !a->head[0] && fstat(a->fd, &st) == 0 && st.st_size == 0;
    a->must_exist = is_empty && access(mark, F_OK) == 0;
    if (is_empty && !a->must_exist) {
        memset(a->last, '0', SHA256_HEX - 1);
        write_head(a);
        (void)fdatasync(a->head_fd); /* once: from then on it is never without a word, whenever the power goes */
        own_fd fd = open(mark, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        r = fd < 0 ? err_os(e, "make %s", mark) : 0;
    }
    flock(a->fd, LOCK_UN);
    return r;
}

int audit_open(struct audit *a, const char *path, enum audit_kind kind, const char *box, const char *id, struct pale_err *e)
{
    char head[PATH_BYTES_MAX];
    *a = (struct audit){.fd = -1, .head_fd = -1, .shared = kind == AUDIT_SHARED, .must_exist = kind == AUDIT_BOX};
    buf_init_lent(&a->line, AUDIT_RECORD_MAX, a->first, sizeof(a->first));
    snprintf(a->box, sizeof(a->box), "%s", box);
    snprintf(a->id, sizeof(a->id), "%s", id);
    snprintf(head, sizeof(head), "%s.head", path);
    a->fd = open_plain(path, O_APPEND, e);
    int r = a->fd < 0 ? a->fd : 0;
    if (r == 0 && (a->head_fd = open_plain(head, 0, e)) < 0)
        r = a->head_fd;
    if (r == 0 && a->shared)
        r = mark_begun(a, path, e);
    if (r == 0 && !a->shared) {
        a->checkpoint = last_checkpoint(path);
        r = catch_up(a, e);
    }
    if (r < 0)
        audit_close(a);
    return r;
}

void audit_close(struct audit *a)
{
    /* The log first: a head that is ahead of it would tell of records that were lost. */
    if (a->fd >= 0 && !a->shared && fdatasync(a->fd) == 0 && a->head_fd >= 0)
        fdatasync(a->head_fd);
    own_close(&a->fd);
    own_close(&a->head_fd);
    buf_done(&a->line);
}

int audit_leave(struct audit *a)
{
    int fd = a->fd;
    /* Under way at once, so that the next commit of the journal has it. The head must not be on the disk before the record is. */
    (void)!sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
    a->fd = -1;
    audit_close(a);
    return fd;
}

int audit_keep_young(const struct audit *a, struct pale_err *e)
{
    if (a->seq > YOUNG_RECORDS || a->shared)
        return 0;
    return fdatasync(a->fd) < 0 || fdatasync(a->head_fd) < 0 ? err_os(e, "write the audit log to the disk") : 0;
}

struct json *audit_begin(struct audit *a, const char *event)
{
    a->trouble.code = 0;
    if (a->shared) {
        int locked = -1;
        for (int tries = 0; locked < 0 && tries < WRITE_TRIES; tries += errno != EINTR)
            locked = flock(a->fd, LOCK_EX);
        /* What does not follow the last record would break the chain for all that come after, and a record behind an end that cannot
         * be read would be lost in it: the commit then says so. */
        if (locked < 0)
            err_os(&a->trouble, "lock the audit log");
    }
    bool behind = a->shared || a->torn;
    a->torn = false;
    if (behind && !a->trouble.code && catch_up(a, &a->trouble) < 0) {
        a->trouble.code = 0;
        a->torn = catch_up(a, &a->trouble) < 0;
    }
    begin_line(a, "", event);
    if (a->caller)
        json_text(&a->json, "caller", a->caller);
    return &a->json;
}

/* The head tells whether the box's keeper has said that it ended. */
static void follow_keeper(struct audit *a)
{
    static const char *const ends[] = {"box.stop", "box.died", "box.refused", "box.lost"};
    if (strcmp(a->event, "box.start") == 0)
        a->running = true;
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
        if (strcmp(a->event, ends[i]) == 0)
            a->running = false;
}

int audit_commit(struct audit *a, struct pale_err *e)
{
    end_line(a);
    if (!a->shared)
        follow_keeper(a);
    int r = a->trouble.code ? err_set(e, a->trouble.code, "%s", a->trouble.text) : append(a, 0, e);
    a->lost += r < 0;
    if (a->shared)
        flock(a->fd, LOCK_UN);
    return r;
}

int audit_record(const struct audit_deed *d, const char *const *texts, struct pale_err *e)
{
    char path[PATH_BYTES_MAX];
    struct audit a;
    if (!path_join(path, sizeof(path), d->state, "audit"))
        return err_set(e, PALE_LIMIT, "path too long: %s", d->state);
    int r = audit_open(&a, path, d->kind, d->box, d->id, e);
    if (r < 0)
        return r;
    a.caller = d->caller;
    struct json *j = audit_begin(&a, d->event);
    for (; texts[0]; texts += 2)
        json_text(j, texts[0], texts[1]);
    r = audit_commit(&a, e);
    audit_close(&a);
    return r;
}
