/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of the file requests that look into files and change them: lines, edit, glob, grep, patch (init/builtin.h). The one writer
 * and the one parser, for pale-init and for the host.
 *
 * How it works: pale-init writes in the box, so whoever reads takes every byte as hostile. An answer is a letter for its kind, a space,
 * and then what its row in wire/answer.c lists: numbers and letters with a space after each, texts with a NUL, and last the length of
 * bytes that follow it. The parser is pure and answers 1 (one is there), 0 (more bytes are needed) or -1 (nothing of ours); what needs
 * more than the maximum of its kind is nothing of ours. A parsed struct points into the bytes it came from. Paths are relative to what
 * was asked about and lead nowhere else. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/limits.h"

enum answer_kind {
    ANSWER_LINES,   /* the one answer of lines: line, last, total, size, flags, text */
    ANSWER_EDITED,  /* of edit: count, line */
    ANSWER_ENTRY,   /* of glob: type, size, mtime, path */
    ANSWER_MATCH,   /* of grep: line, path, text */
    ANSWER_CONTEXT, /* a line beside one */
    ANSWER_FILE,    /* of grep, when files are asked for: path */
    ANSWER_COUNT,   /* and when counts are: count, path */
    ANSWER_CHANGE,  /* of patch: type, path, other */
    ANSWER_END,     /* of glob, grep and patch, after all others: files, count, seen, flags */
    ANSWER_KIND_COUNT,
};

enum answer_flag {
    ANSWER_MORE = 1,   /* there is more than was told */
    ANSWER_BINARY = 2, /* it is no text, and none of it is told */
    ANSWER_CUT = 4,    /* the only line told is not whole */
    ANSWER_TOTAL = 8,  /* total is known */
};

struct answer {
    enum answer_kind kind;
    char type;     /* of an entry as in wire/fileline.h; of a change: a added, c changed, r removed, m moved */
    uint64_t line; /* its number, from 1 */
    uint64_t last; /* 0: none is told */
    uint64_t total, size, count, files, seen;
    uint64_t flags; /* enum answer_flag */
    int64_t mtime;
    const char *path;  /* of grep also "", for the file that was asked about */
    const char *other; /* where what was moved is now; else "" */
    const char *text;
    size_t text_len;
};

#define ANSWER_HEAD_MAX (8 * 21 + 2 * PATH_BYTES_MAX)
#define ANSWER_MAX (ANSWER_HEAD_MAX + LINES_BYTES_MAX)

/* All of it but the bytes of its text, which follow; into ANSWER_HEAD_MAX bytes. Returns the length. */
size_t answer_head_write(const struct answer *a, char *ret);
int answer_parse(const void *p, size_t n, struct answer *ret, size_t *ret_used) MUST_CHECK;
