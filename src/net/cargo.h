/* SPDX-License-Identifier: Apache-2.0 */
/* The members of an export, judged one after another as they come out of an archive.
 *
 *     pale-export.json       first: what it is and what is in it (box/waybill.h)
 *     home/a/b               then the parts, sorted by name, and in each what is in a folder before the folder itself
 *     home/a/
 *     home/
 *     project/.wh.gone       what was deleted of what lies below: in project and root alone
 *     project/d/.wh..wh..opq before project/d/: it hides all that lies below
 *
 * How it works: pure, of fixed size. An archive comes from a stranger. One tree makes one order of members, so nothing can come twice and
 * nothing can come into a folder that has its mode already, and no name has to be remembered to hold that. Whatever no export has is
 * refused, never passed over: devices, pipes, set-id bits, attributes but a user's own, headers of other kinds, other members. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/limits.h"
#include "net/tarhead.h"
#include "net/tarpax.h"

#define CARGO_BILL "pale-export.json"
#define CARGO_MARKS "marks" /* where who unpacks writes down what was deleted and what hides: he cannot make it so himself */
#define CARGO_GONE ".wh."
#define CARGO_OPAQUE ".wh..wh..opq"

/* In marks: one of these, a path and a zero. */
#define CARGO_MARK_GONE 'w'
#define CARGO_MARK_OPAQUE 'o'

enum cargo_kind { CARGO_IS_BILL, CARGO_IS_ENTRY, CARGO_IS_GONE, CARGO_IS_OPAQUE };

/* All zero at first. */
struct cargo {
    bool begun;                  /* the bill has come */
    bool hides;                  /* the folder at last is to come next: it was told to hide what lies below */
    char last[PATH_BYTES_MAX];   /* "": nothing but the bill */
    char target[PATH_BYTES_MAX]; /* of a hard link that was just judged */
};

struct cargo_member {
    const struct tar_head *head;
    const struct tarpax *pax;
    const char *name, *link; /* from either */
    uint64_t size;
};

/* Judges the next member. ret: its path, or that of what is gone, or of the folder that hides. */
int cargo_judge(struct cargo *c, const struct cargo_member *m, enum cargo_kind *ret_kind, char ret[PATH_BYTES_MAX],
                struct pale_err *e) MUST_CHECK;

/* The archive has ended: was it whole? */
int cargo_end(const struct cargo *c, struct pale_err *e) MUST_CHECK;

/* Does the part lie on something, so that deletions in it mean something? */
bool cargo_lies_on(const char *part);
