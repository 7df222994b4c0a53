/* SPDX-License-Identifier: Apache-2.0 */
/* The audit log: one JSON object per line, each with the SHA-256 of the line before it.
 *
 * How it works: a record is written in one append before the deed it tells of. Nothing is ever rewritten. A line that a crash
 * cut short stays, followed by a record that says so; a small file beside the log (box/audit_head.h) holds the number and digest of
 * the last record. Whoever opens the log compares the two, and the last checkpoint. If records are missing, or the last one is not the
 * one that was written, the first new record says so (audit.gap): it takes the number behind the last that was ever given, so that the
 * chain stays open at that place and `pale audit --verify` fails for ever. A shared log (one-shot runs) is locked, and compared, for each
 * append. What survives: the death of any of our processes at any instant; a power cut may take the last seconds, as with any file that
 * is not synced for every line, and what it took is told as a gap. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/sha256.h"
#include "box/audit_head.h"

/* Of a box, which had a record before it was a box; the same while it is made; of many boxes. */
enum audit_kind { AUDIT_BOX, AUDIT_SHARED, AUDIT_BIRTH };

struct audit {
    int fd, head_fd;
    char head[AUDIT_HEAD_BYTES + 8]; /* what the head file said last */
    size_t head_len;
    bool shared, must_exist;
    bool running;        /* a keeper began, and has not said that it ended: when the log was opened, then as records are written */
    uint64_t seq;        /* of the last record */
    uint64_t gaps;       /* records of gaps in the log */
    uint64_t checkpoint; /* how far it had come at the last one; 0: none was taken */
    uint64_t lost;       /* records that could not be written since then; the next one says so */
    bool torn;           /* half a record stands at the end, to be explained before the next */
    char last[SHA256_HEX];
    struct buf line;
    char first[2048]; /* where line begins: a record of what has happened needs no memory that may not be there */
    struct json json;
    char box[BOX_NAME_MAX + 1], id[BOX_ID_LEN + 1], event[32];
    const char *caller;      /* who asked for what the next records tell; NULL: nobody */
    struct pale_err trouble; /* why the end of a shared log could not be found when the record was begun; code 0: it could */
};

/* Opens or begins the log at path; a gap that is found is recorded. box and id stand in every record. The caller of one that is not shared
 * has it alone (the box's lock). */
int audit_open(struct audit *a, const char *path, enum audit_kind kind, const char *box, const char *id, struct pale_err *e) MUST_CHECK;
void audit_close(struct audit *a);
/* The same, but leaves it to the caller to have what was written on the disk before the effect: the log's descriptor. */
int audit_leave(struct audit *a);

/* Writes a log that has just begun to the disk, and its head: from then on neither can be missing because the power went. */
int audit_keep_young(const struct audit *a, struct pale_err *e) MUST_CHECK;

/* Begins a record; the caller adds fields to the writer it gets, then commits. */
struct json *audit_begin(struct audit *a, const char *event);
int audit_commit(struct audit *a, struct pale_err *e) MUST_CHECK;

struct audit_check {
    uint64_t records, torn;
    uint64_t last;    /* number of the last record: more than there are, if there are gaps */
    uint64_t gaps;    /* records that tell of one */
    uint64_t missing; /* records that are known to be missing there */
    bool good;
    uint64_t bad_line; /* first line that does not fit, 1-based; 0 if the end is missing */
    char problem[160];
    char head[SHA256_HEX];
};

/* What is known of a log from elsewhere: its record of that number has this digest. */
struct audit_anchor {
    uint64_t seq; /* 0: nothing is */
    char digest[SHA256_HEX];
};

/* Reads the whole log and recomputes the chain; anchor and id (of the box: the log must be its own) may be NULL. A log that a box must have
 * and that is not there is bad. */
int audit_verify(const char *path, const struct audit_anchor *anchor, const char *id, struct audit_check *ret,
                 struct pale_err *e) MUST_CHECK;

/* How far a log has come by its head file; seq 0 if it has not begun. */
int audit_head(const char *path, struct audit_anchor *ret, struct pale_err *e) MUST_CHECK;

/* How many gaps it has by its head file; 0 if that cannot be read. */
uint64_t audit_gaps(const char *path);

/* The chain of a log that came from elsewhere, with the number and digest of a record that were told as its last ("": none were).
 * Records after that one came while it was read. */
void audit_verify_text(const char *text, size_t n, const char *head, struct audit_check *ret);

/* One record in the log of a box that does not run, which is opened for it: texts are its fields, key and value by turns, ended by NULL. */
struct audit_deed {
    const char *state, *box, *id, *caller, *event;
    enum audit_kind kind;
};
int audit_record(const struct audit_deed *d, const char *const *texts, struct pale_err *e) MUST_CHECK;
