/* SPDX-License-Identifier: Apache-2.0 */
/* The inventory of a tree as it is written, digested and compared with an older one (image/imprint.h has the format). */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/sha256.h"

/* The caller's lines, each of which begins with '#'. Variables of an image's configuration are the longest. */
#define INVENTORY_PREFACE_MAX (1u << 20)

struct inventory_line {
    char kind; /* 'f', 'd' or 'l' */
    unsigned mode;
    uint64_t size;            /* of a file */
    char content[SHA256_HEX]; /* likewise */
    const char *path, *target;
};

/* An inventory that comes into being, and perhaps one beside it that must be the same. */
struct inventory {
    int out_fd, expected_fd; /* -1: none; the caller's */
    struct sha256 digest;
    struct buf line, pending; /* pending: not written yet */
    struct buf expected;      /* read, and from at on not compared yet */
    size_t at;
};

int inventory_open(struct inventory *l, int out_fd, int expected_fd, struct pale_err *e) MUST_CHECK;

/* Lines of the caller's before the first. */
int inventory_preface(struct inventory *l, const char *lines, struct pale_err *e) MUST_CHECK;

/* The next line. PALE_CORRUPT if another was expected: the text says which entry differs and how. */
int inventory_put(struct inventory *l, const struct inventory_line *line, struct pale_err *e) MUST_CHECK;

/* All lines have come: writes what is pending and gives the digest. */
int inventory_close(struct inventory *l, char ret[SHA256_HEX], struct pale_err *e) MUST_CHECK;
void inventory_drop(struct inventory *l);

/* A text as one word of one line, whatever bytes it has: what is not printable ASCII, and the backslash, become \xHH. */
void inventory_add_name(struct buf *b, const char *name);
