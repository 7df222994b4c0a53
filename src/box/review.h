/* SPDX-License-Identifier: Apache-2.0 */
/* What a box wrote, as it differs from what it started from: opened for looking, landing in the user's tree, or throwing away.
 *
 * The box may run meanwhile, and is hostile: its layers are looked at beneath descriptors only (src/tree). */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "base/own.h"
#include "confine/landlock.h"
#include "box/place.h"
#include "box/stack.h"
#include "policy/policy.h"
#include "tier/wall.h"
#include "tree/view.h"

/* Two views of one part of a box. */
struct review {
    enum wall_part part;
    struct policy policy;
    struct view was, is;
    int base_fd;  /* what the part lies on: the project, the image; -1: nothing */
    int *was_fds; /* of the layers */
    int *is_fds;
    size_t *is_from;      /* which layer of the stack's chain each of is has, … */
    uint64_t *is_born_ns; /* … and when it was born; 0: not known */
};

/* A path in the box as people write it, made whole and without "." and "..": absolute, or below cwd if that lies in the project (NULL: it
 * does not), else below the project, or the home of a box that has none. Where links lead is not asked: this is a name in a difference. */
int review_path(const struct policy *policy, const char *cwd, const char *given, char ret[PATH_BYTES_MAX], struct pale_err *e) MUST_CHECK;

/* The part of a box that a path in it belongs to, and the rest of the path, "" for all of it. path NULL: the project if the box has one for
 * review, else its home. PALE_BAD_INPUT if the box keeps no layers of what stands there. */
int review_part(const struct policy *policy, const char *path, enum wall_part *ret, const char **ret_rest, struct pale_err *e) MUST_CHECK;

/* Paths of the project as the comparison has them, relative to it. */
struct review_paths {
    char (*text)[PATH_BYTES_MAX];
    const char **at;
    size_t count; /* 0: everything */
};
void review_paths_done(struct review_paths *p);
#define own_review_paths CLEANUP(review_paths_done) struct review_paths

/* Those that people name, by review_path; all of them must lie in the project, and the project itself means everything. */
int review_choose(const struct policy *policy, const char *cwd, const char *const *given, size_t count, struct review_paths *ret,
                  struct pale_err *e) MUST_CHECK;

/* Opens the views: of what the part lies on, or the snapshot from, and of the box as it is, or the snapshot to (NULL: not given). */
int review_open(const struct place *p, enum wall_part part, const char *from, const char *to, struct review *ret,
                struct pale_err *e) MUST_CHECK;
/* The same of the project, as a closed layer of a stack that is being changed has it. */
int review_open_at(const struct place *p, const struct stack *s, int layer, struct review *ret, struct pale_err *e) MUST_CHECK;
void review_done(struct review *r);
#define own_review CLEANUP(review_done) struct review

/* The process gives up every right but to read what the views are made of (confine/seclusion.h), for good. */
struct review_seclusion {
    bool lands;     /* what the part lies on may be written */
    int beside_fd;  /* one more folder that is read; -1: none */
    int written_fd; /* one more that is written if it lands; -1: none */
    const int *kept;
    size_t kept_count; /* descriptors that stay open; -1 is none */
};
int review_seclude(const struct review *r, const struct review_seclusion *s, struct pale_err *e) MUST_CHECK;
/* The same folders for a child in seclusion. ret: room for three more than the layers of both views. Returns how many. */
size_t review_places(const struct review *r, const struct review_seclusion *s, struct landlock_place *ret);

/* The name of a part's place in the box. */
const char *review_place(const struct policy *policy, enum wall_part part);

/* Writes the deed to the box's log before it is done. */
int review_tell(const struct place *p, const char *event, const char *what, const char *caller, struct pale_err *e) MUST_CHECK;
