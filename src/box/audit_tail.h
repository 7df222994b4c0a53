/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the end of an audit log and says whether it is the end that the head file and the last checkpoint tell of. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/sha256.h"
#include "box/audit_head.h"

/* What stands at the front and at the end of each line; the rest of a record is not read. */
struct audit_record {
    uint64_t seq;
    char prev[SHA256_HEX];
};

/* line has no newline. */
bool audit_record_parse(const char *line, size_t n, struct audit_record *ret);

/* Does the record have this text, which begins and ends with a quote that JSON does not escape? */
bool audit_record_has(const char *line, size_t n, const char *text);

/* The last whole record of a log, and what stands behind it. */
struct audit_tail {
    bool found;
    uint64_t bytes; /* of the whole log */
    uint64_t seq;
    char digest[SHA256_HEX], prev[SHA256_HEX];
    uint64_t torn_bytes; /* behind the last newline, and no record */
    bool unended;        /* the last record lacks nothing but its newline */
    bool foreign;        /* it is of another box */
    int running;         /* 1: it says that a keeper began; 0: that one ended; -1: neither */
};

/* id: of the box; "": the log has records of many. */
int audit_tail_read(int fd, const char *id, struct audit_tail *ret, struct pale_err *e) MUST_CHECK;

/* Why a record of a gap is written. The names stand in the records. */
enum audit_gap { AUDIT_GAP_NONE, AUDIT_GAP_MISSING, AUDIT_GAP_CHANGED, AUDIT_GAP_HEAD, AUDIT_GAP_GONE, AUDIT_GAP_FOREIGN, AUDIT_GAP_COUNT };
const char *audit_gap_name(enum audit_gap g);

/* What is known of the log from elsewhere: its head file, and how far it had come at the last checkpoint (0: none was taken). */
struct audit_witness {
    enum audit_head_state state;
    struct audit_head_line head;
    uint64_t checkpoint;
    bool must_exist; /* the log was begun, whatever it and the head say */
};

/* Is this the end of the log? A log that is ahead of its head is: the power may have gone, or its writer been killed, before the head
 * was written. Reads the whole log only if it is ahead by more than one record. */
int audit_tail_judge(int fd, const struct audit_tail *t, const struct audit_witness *w, enum audit_gap *ret, struct pale_err *e) MUST_CHECK;
