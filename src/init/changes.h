/* SPDX-License-Identifier: Apache-2.0 */
/* Patches, read: which files they change and how.
 *
 * How it works: two forms are known, unified diffs as diff and git write them, and the envelope that models are taught, from
 * `*** Begin Patch` to `*** End Patch`. Both become the same list of changes, each with its hunks, which are ranges of the patch's own
 * text. Whoever wrote it is not trusted: every path is relative and leads nowhere but down, none occurs twice, a hunk that counts its
 * lines has as many, and what makes no sense is an error that names the line. Pure; nothing is allocated. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define CHANGES_MAX 512
#define CHANGES_HUNKS_MAX 8192

enum change_kind { CHANGE_ADD, CHANGE_UPDATE, CHANGE_REMOVE, CHANGE_MOVE };

struct change_hunk {
    const char *text; /* lines, each with its mark: blank, - or +; an empty one is a blank one */
    size_t len;
    const char *anchor; /* a line of the file behind which it stands; NULL: not said */
    size_t anchor_len;
    bool counted;  /* line is known */
    uint64_t line; /* where it begins in the old file, from 1 */
    bool at_end;   /* it reaches the file's end */
};

struct change {
    enum change_kind kind;
    const char *path;
    const char *to; /* of a move; else "" */
    bool executable;
    bool whole; /* its removal says nothing of the content */
    size_t first, hunks;
};

struct changes {
    struct change row[CHANGES_MAX];
    size_t count;
    struct change_hunk hunk[CHANGES_HUNKS_MAX];
    size_t hunks;
    char names[262144];
    size_t used;
};

/* The text stays the caller's, and has to stay: hunks point into it. */
int changes_parse(struct changes *c, const char *text, size_t n, struct pale_err *e) MUST_CHECK;

/* The next line of a hunk: its mark, its text without the newline; bare: "\ No newline at end of file" follows. False at the end. */
struct change_line {
    char mark;
    const char *at;
    size_t len;
    bool bare;
};
bool change_next_line(const struct change_hunk *h, size_t *at, struct change_line *ret);
