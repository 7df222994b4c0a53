/* SPDX-License-Identifier: Apache-2.0 */
/* The audit log: one JSON object per line, each with the SHA-256 of the line before it.
 *
 * How it works: a record is written in one append before the deed it tells of. Nothing is ever rewritten. A line that a crash
 * cut short stays, followed by a record that says so; a small file beside the log holds the number and digest of the last
 * record, so that a log which lost its end is noticed. A shared log (one-shot runs) is locked for each append. What survives:
 * the death of any of our processes at any instant; a power cut may take the last seconds, as with any file that is not synced
 * for every line. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/sha256.h"

struct audit {
    int fd;
    char *head; /* the head file, mapped: a store survives this process as a write would, and costs nothing */
    bool shared;
    uint64_t seq;  /* of the last record */
    uint64_t lost; /* records that could not be written since then; the next one says so */
    bool torn;     /* half a record stands at the end, to be explained before the next */
    char last[SHA256_HEX];
    struct buf line;
    char first[2048]; /* where line begins: a record of what has happened needs no memory that may not be there */
    struct json json;
    char box[BOX_NAME_MAX + 1], id[BOX_ID_LEN + 1];
    const char *caller;      /* who asked for what the next records tell; NULL: nobody */
    struct pale_err trouble; /* why the end of a shared log could not be found when the record was begun; code 0: it could */
};

/* Opens or begins the log at path. box and id stand in every record. */
int audit_open(struct audit *a, const char *path, bool shared, const char *box, const char *id, struct pale_err *e) MUST_CHECK;
void audit_close(struct audit *a);
/* The same, but leaves it to the caller to have what was written on the disk before the effect: the log's descriptor. */
int audit_leave(struct audit *a);

/* Begins a record; the caller adds fields to the writer it gets, then commits. */
struct json *audit_begin(struct audit *a, const char *event);
int audit_commit(struct audit *a, struct pale_err *e) MUST_CHECK;

struct audit_check {
    uint64_t records, torn;
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

/* Reads the whole log and recomputes the chain; anchor may be NULL. */
int audit_verify(const char *path, const struct audit_anchor *anchor, struct audit_check *ret, struct pale_err *e) MUST_CHECK;

/* How far a log has come by its head file; seq 0 if it has not begun. */
int audit_head(const char *path, struct audit_anchor *ret, struct pale_err *e) MUST_CHECK;

/* The chain of a log that came from elsewhere, with the number and digest of a record that were told as its last ("": none were).
 * Records after that one came while it was read. */
void audit_verify_text(const char *text, size_t n, const char *head, struct audit_check *ret);
