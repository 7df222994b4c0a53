/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the end of an audit log and compares it with what tells where the log ends. */
#include "box/audit_tail.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/number.h"

/* Every line ends in ,"prev":"<64 hex>"} and begins with {"seq":N, so both are read without a JSON parser. */
#define PREV_KEY ",\"prev\":\""
#define TAIL_BYTES (sizeof(PREV_KEY) - 1 + 64 + 2)
#define SEQ_KEY "{\"seq\":"

static const char *const gap_names[] = {
    [AUDIT_GAP_NONE] = "none", [AUDIT_GAP_MISSING] = "missing", [AUDIT_GAP_CHANGED] = "changed",
    [AUDIT_GAP_HEAD] = "head", [AUDIT_GAP_GONE] = "gone",       [AUDIT_GAP_FOREIGN] = "foreign",
};
static_assert(sizeof(gap_names) / sizeof(gap_names[0]) == AUDIT_GAP_COUNT, "a name for every kind");

const char *audit_gap_name(enum audit_gap g)
{
    return gap_names[g];
}

bool audit_record_parse(const char *line, size_t n, struct audit_record *ret)
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
    return ret->seq > 0 && strspn(ret->prev, "0123456789abcdef") == 64;
}

bool audit_record_has(const char *line, size_t n, const char *text)
{
    return memmem(line, n, text, strlen(text)) != NULL;
}

/* A renamed box goes on under the id that its last record names. */
static bool is_foreign(const char *line, size_t n, const char *id)
{
    char own[64], renamed[64];
    snprintf(own, sizeof(own), "\"id\":\"%s\"", id);
    snprintf(renamed, sizeof(renamed), "\"to_id\":\"%s\"", id);
    return id[0] && !audit_record_has(line, n, own) && !audit_record_has(line, n, renamed);
}

static int says_running(const char *line, size_t n)
{
    static const char *const ends[] = {"\"event\":\"box.stop\"", "\"event\":\"box.died\"", "\"event\":\"box.refused\""};
    if (audit_record_has(line, n, "\"event\":\"box.start\""))
        return 1;
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
        if (audit_record_has(line, n, ends[i]))
            return 0;
    return -1;
}

static bool take_record(struct audit_tail *t, const char *line, size_t n, const char *id)
{
    struct audit_record rec;
    if (!audit_record_parse(line, n, &rec))
        return false;
    t->found = true;
    t->seq = rec.seq;
    memcpy(t->prev, rec.prev, sizeof(t->prev));
    sha256_hex(line, n, t->digest);
    t->foreign = is_foreign(line, n, id);
    t->running = says_running(line, n);
    return true;
}

/* The last n bytes of the first `size`. */
static int read_end(int fd, off_t size, char *block, size_t n, struct pale_err *e)
{
    for (size_t at = 0; at < n;) {
        ssize_t got = pread(fd, block + at, n - at, size - (off_t)n + (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_os(e, "read the audit log");
        if (got == 0)
            return err_set(e, PALE_CORRUPT, "the audit log became shorter while it was read");
        at += (size_t)got;
    }
    return 0;
}

int audit_tail_read(int fd, const char *id, struct audit_tail *ret, struct pale_err *e)
{
    char block[2 * AUDIT_RECORD_MAX];
    struct audit_tail t = {.running = -1};
    off_t size = lseek(fd, 0, SEEK_END);
    if (size < 0)
        return err_os(e, "read the audit log");
    size_t n = size > (off_t)sizeof(block) ? sizeof(block) : (size_t)size, end = n;
    int r = read_end(fd, size, block, n, e);
    if (r < 0)
        return r;
    while (end > 0 && block[end - 1] != '\n')
        end--;
    t.bytes = (uint64_t)size;
    memset(t.digest, '0', SHA256_HEX - 1);
    t.unended = take_record(&t, block + end, n - end, id);
    t.torn_bytes = t.unended ? 0 : n - end;
    /* Walk back over lines that are no records: an earlier recovery left them. */
    while (!t.found && end > 0) {
        size_t start = end - 1;
        while (start > 0 && block[start - 1] != '\n')
            start--;
        (void)take_record(&t, block + start, end - 1 - start, id);
        end = start;
    }
    *ret = t;
    return 0;
}

/* Is there a record of that number and digest? */
static int has_record(int fd, uint64_t seq, const char *digest, bool *ret, struct pale_err *e)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    FILE *f = copy < 0 ? NULL : fdopen(copy, "r");
    char *line = NULL, hex[SHA256_HEX];
    size_t cap = 0;
    ssize_t n;
    *ret = false;
    if (!f) {
        if (copy >= 0)
            close(copy);
        return err_os(e, "read the audit log");
    }
    rewind(f);
    while (!*ret && (n = getline(&line, &cap, f)) > 0) {
        struct audit_record rec;
        size_t len = (size_t)n - (line[n - 1] == '\n');
        if (!audit_record_parse(line, len, &rec) || rec.seq != seq)
            continue;
        sha256_hex(line, len, hex);
        *ret = strcmp(hex, digest) == 0;
    }
    free(line);
    bool failed = ferror(f);
    fclose(f);
    return failed ? err_os(e, "read the audit log") : 0;
}

int audit_tail_judge(int fd, const struct audit_tail *t, const struct audit_witness *w, enum audit_gap *ret, struct pale_err *e)
{
    const struct audit_head_line *h = &w->head;
    bool has = true;
    int r = 0;
    *ret = AUDIT_GAP_NONE;
    if (t->foreign)
        *ret = AUDIT_GAP_FOREIGN;
    else if (w->checkpoint > t->seq)
        *ret = AUDIT_GAP_MISSING;
    else if (w->state != AUDIT_HEAD_GOOD && (t->found || t->bytes > 0 || w->state == AUDIT_HEAD_BAD))
        *ret = t->found ? AUDIT_GAP_HEAD : AUDIT_GAP_GONE;
    else if (w->state != AUDIT_HEAD_GOOD || (w->must_exist && h->seq == 0 && !t->found))
        *ret = w->must_exist ? AUDIT_GAP_GONE : AUDIT_GAP_NONE;
    else if (h->seq != t->seq && t->found && strcmp(h->digest, t->digest) == 0)
        *ret = AUDIT_GAP_HEAD;
    else if (h->seq > t->seq)
        *ret = t->bytes == 0 ? AUDIT_GAP_GONE : AUDIT_GAP_MISSING;
    else if (h->seq == t->seq)
        *ret = strcmp(h->digest, t->digest) == 0 ? AUDIT_GAP_NONE : AUDIT_GAP_CHANGED;
    else if (h->seq > 0) {
        r = has_record(fd, h->seq, h->digest, &has, e);
        *ret = has ? AUDIT_GAP_NONE : AUDIT_GAP_CHANGED;
    }
    return r;
}
