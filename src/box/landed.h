/* SPDX-License-Identifier: Apache-2.0 */
/* What a box's apply has agreed on with the project: for each path the version of the box that was landed, which the next apply takes for
 * what both sides began with.
 *
 * How it works: the folder `landed` of the box's state has a list, to which each landing adds a line, and the content of texts, named by
 * digest. A line counts for the layers that the box had at that time: a fork of an older snapshot, or a box that was restored, has not had
 * what was landed later. A line that is cut off at the end was never written; any other that is not whole makes the list unusable, which is
 * an error. Content is used only if it has its digest. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/jsonread.h"
#include "base/own.h"
#include "base/sha256.h"
#include "box/place.h"
#include "box/stack.h"
#include "tree/leaf.h"
#include "tree/threeway.h"

#define LANDED_FOLDER "landed"
#define LANDED_TEXT_MAX (1u << 20) /* content of longer files is not kept: they are known by digest alone */

#define LANDED_FORGOTTEN LEAF_KIND_COUNT

struct landed_line {
    const char *path;
    uint64_t at_ms;
    enum leaf_kind kind; /* LANDED_FORGOTTEN: what was landed there before counts no more */
    mode_t mode;
    bool described;          /* for whoever goes through them */
    char digest[SHA256_HEX]; /* of a file's content, or of where a link leads; else "" */
};

struct landed {
    int dir_fd, list_fd;
    struct landed_line *lines; /* by path; of each path the last that counts */
    size_t count;
    struct buf text; /* where their paths are */
};
#define own_landed CLEANUP(landed_done) struct landed
#define LANDED_NONE                                                                                                                        \
    {                                                                                                                                      \
        .dir_fd = -1, .list_fd = -1                                                                                                        \
    }
void landed_done(struct landed *l);

/* Every line of a list, in its order; at_ms, kind and so on as they stand. PALE_CORRUPT if one is not whole. ret->lines, count, text. */
int landed_parse(const char *text, size_t len, struct landed *ret, struct pale_err *e) MUST_CHECK;

/* The list of a box, with what counts for its open layer. It is made if there is none and makes is set; else it is empty then. */
int landed_open(const struct place *p, const struct stack *s, bool makes, struct landed *ret, struct pale_err *e) MUST_CHECK;

/* What was landed at path, or NULL. */
const struct landed_line *landed_find(const struct landed *l, const char *path);

/* The same as something to compare with; its fd is -1 where the content was not kept. */
int landed_thing(const struct landed *l, const struct landed_line *line, struct threeway_thing *ret, struct pale_err *e) MUST_CHECK;

/* The line for a version of the box's, and its content is kept; NULL: there is no memory. The caller frees it. */
char *landed_write(const struct landed *l, uint64_t at_ms, const char *path, const struct threeway_thing *t);
/* It is done: the line counts from now on. */
int landed_add(const struct landed *l, const char *line, struct pale_err *e) MUST_CHECK;

/* Everything that was landed by the box goes to a fork of it as well. */
int landed_copy(const struct place *from, const struct place *to, struct pale_err *e) MUST_CHECK;

/* What a version began with, as text that an export carries: "KIND MODE DIGEST PATH". False: it cannot be said. */
bool landed_describe(struct buf *out, const char *path, const struct threeway_thing *t);

/* The same of a line. */
void landed_describe_line(struct buf *out, const struct landed_line *line);

/* Such texts become the list of a box that was imported, as of at_ms. A stranger's: PALE_CORRUPT if one is none. */
int landed_import(const struct place *p, uint64_t at_ms, const struct jsonread *texts, struct pale_err *e) MUST_CHECK;

/* The open layer is empty, so what was landed since it was opened is what the layer below it holds: from now on it counts for that one. */
int landed_settle(const struct place *p, const struct stack *s, struct pale_err *e) MUST_CHECK;

/* Before some paths are discarded, and the layers become one: what counts until now is written down anew, and that nothing counts of the
 * rest and of these paths. */
int landed_forget(const struct place *p, const struct stack *s, const char *const *paths, size_t count, struct pale_err *e) MUST_CHECK;
