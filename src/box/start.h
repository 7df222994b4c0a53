/* SPDX-License-Identifier: Apache-2.0 */
/* What a project under review held when the box began with it: of each file that git knew, which blob that was.
 *
 * How it works: while the keeper of a new box builds its wall, a child in seclusion reads the index of the user's repository (no git is
 * run) and looks at each file in it that lies in the project. One that nobody has written since the index was is what the index says, and
 * its blob can be had from git for as long as it keeps it, whatever is committed, pulled or rebased later. One that differs, or that was
 * written in the same instant as the index, is known by a digest of its content. Files that git does not know, or that were written since
 * the box began, are in no line: about these nothing is known. The list is one file of the box's state for each layer with which a project
 * began (box/stack.h). A project without git, or with an index of more than START_INDEX_MAX, has none.
 *
 * The index is the user's, but an older box may have written it: it is read by a strict, bounded parser. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/own.h"
#include "base/sha256.h"
#include "box/place.h"
#include "box/stack.h"
#include "confine/seclusion.h"
#include "policy/policy.h"

#define START_INDEX_MAX (4u << 20) /* some 40,000 files; looking at more would hold up who makes the box */
#define START_OID_MAX 64

struct start_file {
    const char *path;
    char oid[START_OID_MAX + 1];
    uint64_t size;
    uint32_t mode;           /* of the kind and 0777, as stat has it */
    char digest[SHA256_HEX]; /* of the content it had; "": that of the blob */
};

struct start {
    struct start_file *files; /* by path */
    size_t count;
    struct buf text;
};
#define own_start CLEANUP(start_done) struct start
void start_done(struct start *s);

/* A look that is under way. */
struct start_look {
    struct secluded child;
    int out_fd;
    uint64_t born_ns; /* of the layer with which the project begins; 0: nothing is waited for */
    char layer[LAYER_ID_LEN + 1];
};
#define own_start_look CLEANUP(start_look_done) struct start_look
#define START_LOOK_NONE                                                                                                                    \
    {                                                                                                                                      \
        .child = {.fd = -1}, .out_fd = -1                                                                                                  \
    }
void start_look_done(struct start_look *l);

/* Begins to look, if the box has a project for review. What fails is no error: less is known then. */
void start_look_begin(struct start_look *l, const struct place *p, const struct policy *policy);
/* Waits for it, and writes the list. A file that is written from now on has a time after the birth of the layer. */
void start_look_end(struct start_look *l, const struct place *p);

/* All of that for the layer with which the project of a box that was just made, or discarded, begins. */
void start_look(const struct place *p, const struct policy *policy);

/* The list for a layer; empty if there is none. PALE_CORRUPT if it cannot be read to its last byte. */
int start_parse(const char *text, size_t len, struct start *ret, struct pale_err *e) MUST_CHECK;
int start_load(const struct place *p, const char *layer, struct start *ret, struct pale_err *e) MUST_CHECK;
const struct start_file *start_find(const struct start *s, const char *path);

/* The list that counts for a stack goes to a fork as well. */
int start_copy(const struct place *from, const struct place *to, const struct stack *s, struct pale_err *e) MUST_CHECK;
