/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the audit log: appending, recovery, verification. */
#include "box/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/number.h"
#include "base/own.h"
#include "base/weak.h"

/* Every line ends in ,"prev":"<64 hex>"} and begins with {"seq":N, so both are read without a JSON parser. */
#define PREV_KEY ",\"prev\":\""
#define TAIL_BYTES (sizeof(PREV_KEY) - 1 + 64 + 2)
#define SEQ_KEY "{\"seq\":"
/* Twenty digits, a blank, a digest, a newline. */
#define HEAD_BYTES 86u

/* A record of what has happened already is lost if it cannot be written, so a passing trouble is waited out. */
#define WRITE_TRIES 3

static const char zeros[SHA256_HEX] = "0000000000000000000000000000000000000000000000000000000000000000";

struct record {
    uint64_t seq;
    char prev[SHA256_HEX];
};

/* line has no newline. */
static bool read_record(const char *line, size_t n, struct record *ret)
{
    char word[24] = "";
    if (n < sizeof(SEQ_KEY) + TAIL_BYTES || memcmp(line, SEQ_KEY, sizeof(SEQ_KEY) - 1) != 0)
        return false;
    size_t digits = strspn(line + sizeof(SEQ_KEY) - 1, "0123456789");
    if (digits == 0 || digits >= sizeof(word))
        return false;
    memcpy(word, line + sizeof(SEQ_KEY) - 1, digits);
    const char *tail = line + n - TAIL_BYTES;
    if (memcmp(tail, PREV_KEY, sizeof(PREV_KEY) - 1) != 0 || memcmp(line + n - 2, "\"}", 2) != 0 ||
        !number_u64(word, UINT64_MAX, &ret->seq))
        return false;
    memcpy(ret->prev, tail + sizeof(PREV_KEY) - 1, 64);
    ret->prev[64] = 0;
    return strspn(ret->prev, "0123456789abcdef") == 64;
}

static bool take_record(struct audit *a, const char *line, size_t n)
{
    struct record rec;
    if (!read_record(line, n, &rec))
        return false;
    a->seq = rec.seq;
    sha256_hex(line, n, a->last);
    return true;
}

/* Finds the last whole record of the file; *ret_torn is how many bytes stand after the last newline, *ret_unended whether they are
 * that record, which then lacks nothing but its newline. */
static int read_last(struct audit *a, uint64_t *ret_torn, bool *ret_unended, struct pale_err *e)
{
    char block[2 * AUDIT_RECORD_MAX];
    off_t size = lseek(a->fd, 0, SEEK_END);
    if (size < 0)
        return err_os(e, "read the audit log");
    off_t from = size > (off_t)sizeof(block) ? size - (off_t)sizeof(block) : 0;
    size_t n = 0;
    while (n < (size_t)(size - from)) {
        ssize_t got = pread(a->fd, block + n, (size_t)(size - from) - n, from + (off_t)n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_os(e, "read the audit log");
        if (got == 0)
            return err_set(e, PALE_CORRUPT, "the audit log became shorter while it was read");
        n += (size_t)got;
    }
    size_t end = n;
    while (end > 0 && block[end - 1] != '\n')
        end--;
    *ret_torn = n - end;
    a->seq = 0;
    memcpy(a->last, zeros, sizeof(zeros));
    *ret_unended = take_record(a, block + end, (size_t)n - end);
    if (*ret_unended)
        return 0;
    /* Walk back over lines that are no records: an earlier recovery left them. */
    while (end > 0) {
        size_t start = end - 1;
        while (start > 0 && block[start - 1] != '\n')
            start--;
        if (take_record(a, block + start, end - 1 - start))
            return 0;
        end = start;
    }
    return size == 0 || *ret_torn == (uint64_t)size
               ? 0
               : err_set(e, PALE_CORRUPT,
                         "the audit log holds no record near its end; `pale audit --verify` says more, and moving it away begins another");
}

static void write_head(struct audit *a)
{
    char head[HEAD_BYTES + 1];
    snprintf(head, sizeof(head), "%020llu %s\n", (unsigned long long)a->seq, a->last);
    memcpy(a->head, head, HEAD_BYTES);
}

static int map_head(struct audit *a, const char *path, struct pale_err *e)
{
    own_fd fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0 || (st.st_size != HEAD_BYTES && ftruncate(fd, HEAD_BYTES) < 0))
        return err_os(e, "open %s", path);
    void *p = mmap(NULL, HEAD_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        return err_os(e, "map %s", path);
    a->head = p;
    return 0;
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
    return err_set(e, PALE_OS, "the audit log took only part of a record; is the disk full?");
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

static int catch_up(struct audit *a, struct pale_err *e)
{
    uint64_t torn = 0;
    bool unended = false;
    int r = read_last(a, &torn, &unended, e);
    if (r == 0 && unended)
        return write(a->fd, "\n", 1) == 1 ? 0 : err_os(e, "write the audit log");
    return r == 0 && torn > 0 ? recover(a, torn, e) : r;
}

int audit_open(struct audit *a, const char *path, bool shared, const char *box, const char *id, struct pale_err *e)
{
    char head[PATH_BYTES_MAX];
    *a = (struct audit){.fd = -1, .shared = shared};
    buf_init_lent(&a->line, AUDIT_RECORD_MAX, a->first, sizeof(a->first));
    snprintf(a->box, sizeof(a->box), "%s", box);
    snprintf(a->id, sizeof(a->id), "%s", id);
    snprintf(head, sizeof(head), "%s.head", path);
    a->fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    int r = a->fd < 0 ? err_os(e, "open the audit log %s", path) : map_head(a, head, e);
    if (r == 0 && !shared)
        r = catch_up(a, e);
    if (r < 0)
        audit_close(a);
    return r;
}

void audit_close(struct audit *a)
{
    if (a->fd >= 0 && !a->shared)
        fdatasync(a->fd);
    own_close(&a->fd);
    if (a->head)
        munmap(a->head, HEAD_BYTES);
    a->head = NULL;
    buf_done(&a->line);
}

int audit_leave(struct audit *a)
{
    int fd = a->fd;
    /* Under way at once, so that the next commit of the journal has it. */
    (void)!sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
    a->fd = -1;
    audit_close(a);
    return fd;
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

int audit_commit(struct audit *a, struct pale_err *e)
{
    end_line(a);
    int r = a->trouble.code ? err_set(e, a->trouble.code, "%s", a->trouble.text) : append(a, 0, e);
    a->lost += r < 0;
    if (a->shared)
        flock(a->fd, LOCK_UN);
    return r;
}

static void bad(struct audit_check *c, uint64_t line, const char *why)
{
    c->good = false;
    c->bad_line = line;
    snprintf(c->problem, sizeof(c->problem), "%s", why);
}

/* State of a verification: what the next record must say. */
struct walk {
    struct audit_check *check;
    const struct audit_anchor *anchor;
    uint64_t line, next_seq;
    bool torn; /* the line before was no record */
};

static bool step(struct walk *w, const char *line, size_t n)
{
    struct audit_check *c = w->check;
    struct record rec;
    w->line++;
    if (!read_record(line, n, &rec)) {
        if (w->torn)
            return bad(c, w->line, "two damaged lines in a row"), false;
        w->torn = true;
        c->torn++;
        return true;
    }
    if (rec.seq != w->next_seq)
        return bad(c, w->line, "records are missing or out of order"), false;
    if (strcmp(rec.prev, c->head) != 0)
        return bad(c, w->line, "the record before it was changed"), false;
    if (w->torn && !memmem(line, n, "\"event\":\"audit.recovered\"", 25))
        return bad(c, w->line, "a damaged line is not explained"), false;
    w->torn = false;
    w->next_seq++;
    c->records++;
    sha256_hex(line, n, c->head);
    if (w->anchor && rec.seq == w->anchor->seq && strcmp(c->head, w->anchor->digest) != 0)
        return bad(c, w->line, "it is not what stood here at the last checkpoint"), false;
    return true;
}

static void check_head(struct audit_check *c, const char *path)
{
    char head[PATH_BYTES_MAX], text[96] = "", want[96];
    snprintf(head, sizeof(head), "%s.head", path);
    own_fd fd = open(head, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fd_read_full(fd, text, sizeof(text) - 1) <= 0) {
        if (c->records > 0)
            bad(c, 0, "the head file is missing");
        return;
    }
    if (c->records == 0 && text[0] == 0)
        return; /* made, and its keeper killed before the first record */
    snprintf(want, sizeof(want), "%020llu %s\n", (unsigned long long)c->records, c->head);
    char number[24] = "";
    uint64_t seq = 0;
    memcpy(number, text, 20);
    const char *digits = number + strspn(number, "0");
    if (strcmp(text, want) == 0)
        return;
    /* One behind is what a kill between the two writes leaves. */
    if (number_u64(*digits ? digits : "0", UINT64_MAX, &seq) && seq + 1 == c->records)
        return;
    bad(c, 0, seq > c->records ? "records are missing at the end" : "the head does not fit the last record");
}

/* Is the record that was told as the last among them? */
static void check_told(struct audit_check *c, uint64_t seq, const char *head, bool found)
{
    if (!c->good || (c->records == 0 && head[0] == 0))
        return;
    if (head[0] == 0)
        bad(c, 0, "nobody told where the log ends");
    else if (!found)
        bad(c, 0, seq > c->records ? "records are missing at the end" : "the head does not fit its record");
}

void audit_verify_text(const char *text, size_t n, const char *head, struct audit_check *ret)
{
    struct audit_check c = {.good = true};
    struct walk w = {.check = &c, .next_seq = 1};
    uint64_t seq = 0;
    bool going = true, found = false;
    char number[24] = "";
    memcpy(c.head, zeros, sizeof(zeros));
    if (strlen(head) == 20 + 1 + SHA256_HEX - 1)
        memcpy(number, head, 20);
    const char *digits = number + strspn(number, "0");
    if (!number_u64(*digits ? digits : "0", UINT64_MAX, &seq))
        seq = 0;
    for (size_t at = 0; going && at < n;) {
        const char *end = memchr(text + at, '\n', n - at);
        size_t len = end ? (size_t)(end - text) - at : n - at;
        uint64_t before = c.records;
        going = step(&w, text + at, len);
        if (c.records == seq && before < seq)
            found = strcmp(c.head, head + 21) == 0;
        at += len + (end ? 1 : 0);
    }
    check_told(&c, seq, head, found);
    *ret = c;
}

int audit_verify(const char *path, const struct audit_anchor *anchor, struct audit_check *ret, struct pale_err *e)
{
    FILE *f = fopen(path, "re");
    if (!f)
        return err_os(e, "open the audit log %s", path);
    struct audit_check c = {.good = true};
    memcpy(c.head, zeros, sizeof(zeros));
    struct walk w = {.check = &c, .anchor = anchor, .next_seq = 1};
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    bool going = true;
    while (going && (n = getline(&line, &cap, f)) > 0) {
        bool whole = line[n - 1] == '\n';
        going = step(&w, line, (size_t)n - whole);
        if (!whole && going)
            c.torn += !w.torn;
    }
    free(line);
    fclose(f);
    if (c.good)
        check_head(&c, path);
    if (c.good && anchor && c.records < anchor->seq)
        bad(&c, 0, "records are missing that were there at the last checkpoint");
    if (weak_word("audit-chain"))
        c.good = true;
    *ret = c;
    return 0;
}

int audit_head(const char *path, struct audit_anchor *ret, struct pale_err *e)
{
    char head[PATH_BYTES_MAX], text[96] = "", number[24] = "";
    snprintf(head, sizeof(head), "%s.head", path);
    *ret = (struct audit_anchor){0};
    own_fd fd = open(head, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : err_os(e, "open %s", head);
    if (fd_read_full(fd, text, sizeof(text) - 1) != HEAD_BYTES || text[20] != ' ' || text[0] == 0)
        return 0;
    memcpy(number, text, 20);
    const char *digits = number + strspn(number, "0");
    if (!number_u64(*digits ? digits : "0", UINT64_MAX, &ret->seq))
        return err_set(e, PALE_CORRUPT, "%s is damaged", head);
    memcpy(ret->digest, text + 21, SHA256_HEX - 1);
    return 0;
}
