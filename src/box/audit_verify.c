/* SPDX-License-Identifier: Apache-2.0 */
/* Verifies an audit log: recomputes its chain and compares its end with what was told about it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/number.h"
#include "base/own.h"
#include "base/weak.h"
#include "box/audit.h"
#include "box/audit_head.h"
#include "box/audit_tail.h"

/* A head that is read while its keeper writes it may be half of each line. */
#define VERIFY_TRIES 3

/* The first that is wrong is told. */
static void bad(struct audit_check *c, uint64_t line, const char *why)
{
    if (!c->good)
        return;
    c->good = false;
    c->bad_line = line;
    snprintf(c->problem, sizeof(c->problem), "%s", why);
}

/* State of a verification: what the next record must say. */
struct walk {
    struct audit_check *check;
    const struct audit_anchor *anchor;
    struct audit_head_line told; /* of which record the digest is known; seq 0: of none */
    bool found;                  /* it is there, and has that digest */
    const char *id;
    uint64_t line;
    bool torn;    /* the line before was no record */
    bool foreign; /* the record before is of another box */
};

static uint64_t field_of(const char *line, size_t n, const char *key)
{
    char digits[24] = "";
    const char *at = memmem(line, n, key, strlen(key));
    uint64_t v = 0;
    if (!at)
        return 0;
    at += strlen(key);
    for (size_t i = 0; i + 1 < sizeof(digits) && at < line + n && *at >= '0' && *at <= '9'; i++)
        digits[i] = *at++;
    return number_u64(digits, UINT64_MAX, &v) ? v : 0;
}

/* A record that tells of a gap takes the number behind the last that was given, whatever of them is left. */
static void note_gap(struct walk *w, const struct audit_record *rec, const char *line, size_t n)
{
    struct audit_check *c = w->check;
    char text[sizeof(c->problem)];
    uint64_t missing = field_of(line, n, "\"missing\":");
    unsigned long long seq = rec->seq;
    c->gaps++;
    c->missing += missing;
    if (missing == 1)
        snprintf(text, sizeof(text), "record %llu is missing or was damaged, as record %llu tells", seq - 1, seq);
    else if (missing > 1 && missing < rec->seq)
        snprintf(text, sizeof(text), "records %llu to %llu are missing or were damaged, as record %llu tells",
                 seq - (unsigned long long)missing, seq - 1, seq);
    else if (audit_record_has(line, n, "\"what\":\"gone\""))
        snprintf(text, sizeof(text), "the log was gone, as record %llu tells", seq);
    else if (audit_record_has(line, n, "\"what\":\"foreign\""))
        snprintf(text, sizeof(text), "the log of another box stood here, as record %llu tells", seq);
    else if (audit_record_has(line, n, "\"what\":\"head\""))
        snprintf(text, sizeof(text), "the head file was gone or damaged, so records may be missing before record %llu, which tells of it",
                 seq);
    else
        snprintf(text, sizeof(text), "what stands before record %llu is not what was written, as that record tells", seq);
    bad(c, w->line, text);
}

/* Does the log's box go on under this record's id? */
static bool is_of_box(const char *line, size_t n, const char *id)
{
    char own[64], renamed[64];
    snprintf(own, sizeof(own), "\"id\":\"%s\"", id);
    snprintf(renamed, sizeof(renamed), "\"to_id\":\"%s\"", id);
    return audit_record_has(line, n, own) || audit_record_has(line, n, renamed);
}

static bool step_record(struct walk *w, const char *line, size_t n, const struct audit_record *rec)
{
    struct audit_check *c = w->check;
    bool gap = audit_record_has(line, n, "\"event\":\"audit.gap\"");
    if (gap && rec->seq > c->last)
        note_gap(w, rec, line, n);
    else if (rec->seq != c->last + 1)
        return bad(c, w->line, "records are missing or out of order"), false;
    else if (strcmp(rec->prev, c->head) != 0)
        return bad(c, w->line, "the record before it was changed"), false;
    if (w->torn && !gap && !audit_record_has(line, n, "\"event\":\"audit.recovered\""))
        return bad(c, w->line, "a damaged line is not explained"), false;
    w->torn = false;
    w->foreign = w->id && !is_of_box(line, n, w->id);
    c->last = rec->seq;
    c->records++;
    sha256_hex(line, n, c->head);
    if (w->told.seq == rec->seq)
        w->found = strcmp(c->head, w->told.digest) == 0;
    if (w->anchor && rec->seq == w->anchor->seq && strcmp(c->head, w->anchor->digest) != 0)
        return bad(c, w->line, "it is not what stood here at the last checkpoint"), false;
    return true;
}

static bool step(struct walk *w, const char *line, size_t n)
{
    struct audit_record rec;
    w->line++;
    if (audit_record_parse(line, n, &rec))
        return step_record(w, line, n, &rec);
    w->torn = true; /* several in a row: what should have explained the first was cut too */
    w->check->torn++;
    return true;
}

/* Records behind the one that was told as the last came later, or their writer was killed before he told. */
static void check_told(struct walk *w)
{
    struct audit_check *c = w->check;
    if (w->told.seq > c->last)
        bad(c, 0, "records are missing at the end");
    else if (w->told.seq > 0 && !w->found)
        bad(c, 0, "the head does not fit its record");
    else if (w->told.gaps > c->gaps)
        bad(c, 0, "the record of a gap is missing");
    if (w->id && w->foreign && c->records > 0)
        bad(c, 0, "it is the log of another box");
}

void audit_verify_text(const char *text, size_t n, const char *head, struct audit_check *ret)
{
    struct audit_check c = {.good = true};
    struct walk w = {.check = &c};
    char line[AUDIT_HEAD_BYTES + 1];
    bool going = true;
    memset(c.head, '0', SHA256_HEX - 1);
    snprintf(line, sizeof(line), "%s\n", head);
    enum audit_head_state state = head[0] ? audit_head_parse(line, strlen(line), &w.told) : AUDIT_HEAD_BLANK;
    for (size_t at = 0; going && at < n;) {
        const char *end = memchr(text + at, '\n', n - at);
        size_t len = end ? (size_t)(end - text) - at : n - at;
        going = step(&w, text + at, len);
        at += len + (end ? 1 : 0);
    }
    if (going && state == AUDIT_HEAD_GOOD)
        check_told(&w);
    else if (going && c.records > 0)
        bad(&c, 0, state == AUDIT_HEAD_BLANK ? "nobody told where the log ends" : "what tells where the log ends is damaged");
    *ret = c;
}

/* -1: there is none. */
static int open_log(const char *path, int *ret, struct pale_err *e)
{
    struct stat st;
    own_fd fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    *ret = -1;
    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0 && errno != ELOOP)
        return err_os(e, "open the audit log %s", path);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return err_set(e, PALE_CORRUPT, "%s is no plain file: this is not the audit log", path);
    *ret = take_fd(&fd);
    return 0;
}

static int load_head(const char *path, struct audit_head_line *ret, enum audit_head_state *ret_state, struct pale_err *e)
{
    char head[PATH_BYTES_MAX], text[AUDIT_HEAD_BYTES + 2] = "";
    int fd;
    snprintf(head, sizeof(head), "%s.head", path);
    int r = open_log(head, &fd, e);
    if (r < 0)
        return r;
    ssize_t n = fd < 0 ? 0 : fd_read_full(fd, text, sizeof(text) - 1);
    own_close(&fd);
    *ret_state = audit_head_parse(text, n > 0 ? (size_t)n : 0, ret);
    return 0;
}

static bool walk_file(struct walk *w, FILE *f)
{
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    bool going = true;
    while (going && (n = getline(&line, &cap, f)) > 0) {
        bool whole = line[n - 1] == '\n';
        going = step(w, line, (size_t)n - whole);
    }
    free(line);
    return going;
}

static int verify_once(const char *path, const struct audit_anchor *anchor, const char *id, struct audit_check *ret, struct pale_err *e)
{
    struct audit_check c = {.good = true};
    struct walk w = {.check = &c, .anchor = anchor, .id = id};
    enum audit_head_state state = AUDIT_HEAD_BLANK;
    int fd;
    bool going = true;
    memset(c.head, '0', SHA256_HEX - 1);
    int r = load_head(path, &w.told, &state, e); /* first, so that the log is never behind it */
    if (r == 0)
        r = open_log(path, &fd, e);
    if (r < 0)
        return r;
    FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
    if (fd >= 0 && !f) {
        own_close(&fd);
        return err_os(e, "read %s", path);
    }
    if (f) {
        going = walk_file(&w, f);
        fclose(f);
    } else if (id || state != AUDIT_HEAD_BLANK) {
        bad(&c, 0, "the log is missing");
    }
    if (going && state == AUDIT_HEAD_GOOD)
        check_told(&w);
    else if (going && (c.records > 0 || state == AUDIT_HEAD_BAD || id))
        bad(&c, 0, state == AUDIT_HEAD_BLANK ? "the head file is missing or empty" : "the head file is damaged");
    if (going && anchor && c.last < anchor->seq)
        bad(&c, 0, "records are missing that were there at the last checkpoint");
    *ret = c;
    return 0;
}

int audit_verify(const char *path, const struct audit_anchor *anchor, const char *id, struct audit_check *ret, struct pale_err *e)
{
    int r = 0;
    for (int tries = 0; tries < VERIFY_TRIES; tries++) {
        r = verify_once(path, anchor, id, ret, e);
        if (r < 0 || ret->good || ret->gaps)
            break;
    }
    if (r == 0 && weak_word("audit-chain"))
        ret->good = true;
    return r;
}

int audit_head(const char *path, struct audit_anchor *ret, struct pale_err *e)
{
    struct audit_head_line l = {0};
    enum audit_head_state state;
    *ret = (struct audit_anchor){0};
    int r = load_head(path, &l, &state, e);
    if (r < 0 || state != AUDIT_HEAD_GOOD)
        return r;
    ret->seq = l.seq;
    memcpy(ret->digest, l.digest, sizeof(ret->digest));
    return 0;
}

uint64_t audit_gaps(const char *path)
{
    struct audit_head_line l = {0};
    enum audit_head_state state;
    return load_head(path, &l, &state, NULL) == 0 && state == AUDIT_HEAD_GOOD ? l.gaps : 0;
}
