/* SPDX-License-Identifier: Apache-2.0 */
/* What to do with one path of three trees: what the box began with, what it made of it, and what the user has now.
 *
 * The user's work comes first. The box's version lands only if the user still has what the box began with; text that both changed is merged
 * line by line, and mode beside content; everything else, and every doubt, is a conflict. */
#pragma once

#include "base/buf.h"
#include "base/sha256.h"
#include "base/err.h"
#include "tree/leaf.h"

struct threeway_thing {
    enum leaf_kind kind;
    mode_t mode;             /* of a file or folder; 0777 counts, and nothing else is ever landed */
    int fd;                  /* of a file, open for reading; owned */
    struct buf target;       /* of a link */
    char digest[SHA256_HEX]; /* not "": of the content or target, which counts in their place; the content may not be there (fd -1) */
};

void threeway_thing_done(struct threeway_thing *t);

/* A digest of a file's content or of where a link leads, for us alone to compare. Of a file it does not depend on where its holes are. */
int threeway_digest(const struct threeway_thing *t, char ret[SHA256_HEX], struct pale_err *e) MUST_CHECK;

/* Opens what leaf, found at root_fd/path, stands for. */
int threeway_open(int root_fd, const char *path, const struct leaf *leaf, struct threeway_thing *ret, struct pale_err *e) MUST_CHECK;

int threeway_same(const struct threeway_thing *a, const struct threeway_thing *b, bool *ret, struct pale_err *e) MUST_CHECK;

enum threeway_verdict {
    THREEWAY_NOTHING, /* the user has it already, or the box changed nothing */
    THREEWAY_LAND,
    THREEWAY_MERGE, /* with the content in merged, and the mode */
    THREEWAY_CONFLICT,
};

struct threeway {
    const struct threeway_thing *base, *theirs, *ours; /* ours is what the user has; base is NULL if it is not known */
    enum threeway_verdict verdict;
    struct buf merged; /* the caller's, and begun by it */
    mode_t mode;
    const char *reason; /* of a conflict */
    bool agrees;        /* with this the user's tree has what the box has, or all that it has changed: the next base */
};

int threeway_decide(struct threeway *w, struct pale_err *e) MUST_CHECK;
