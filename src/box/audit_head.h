/* SPDX-License-Identifier: Apache-2.0 */
/* The small file beside an audit log that says how far the log has come: reading, writing and comparing its one line.
 *
 * The line has the number and digest of the last record, how many gaps the log has, and whether the box's keeper runs. It is written in
 * one call, and lies in one sector of the disk: whoever is killed, it is the line before or the new one. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sha256.h"

/* Twenty digits, a digest, twenty digits, one digit; three blanks and a newline. */
#define AUDIT_HEAD_BYTES 109u

enum audit_head_state { AUDIT_HEAD_BLANK, AUDIT_HEAD_BAD, AUDIT_HEAD_GOOD };

struct audit_head_line {
    uint64_t seq; /* 0: the log is begun and has no record yet */
    char digest[SHA256_HEX];
    uint64_t gaps;
    bool running; /* a keeper has begun, and has not said that it ended */
};

/* Blank: nothing but zero bytes, or none. The line of an earlier build, which ends behind the digest, is good. */
enum audit_head_state audit_head_parse(const char *text, size_t n, struct audit_head_line *ret);

void audit_head_write(const struct audit_head_line *l, char ret[AUDIT_HEAD_BYTES + 1]);
