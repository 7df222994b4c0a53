/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes that are cut off from every network by the operator's word, whatever their policies say, until he takes it back.
 *
 * It is a file: `cut` in a box's state folder, or `panic` in the user's, which is about every box there is or will be, one-shot ones too. A
 * keeper looks for them when its box starts, and when it is told to. */
#pragma once

#include <stdbool.h>

#include "box/place.h"

#define CUTOFF_BOX "cut"
#define CUTOFF_ALL "panic"

/* By whose word the box of that state folder (NULL: a one-shot one) is cut off: bits of enum msg_cut. Doubt counts as cut. */
unsigned cutoff_of(const char *box_dir, const char *user_dir);
unsigned cutoff_of_place(const struct place *p);

/* "quarantine", "panic", or both; "" for none. */
const char *cutoff_name(unsigned cut);

/* Cuts one box off, or takes that back. Nothing happens if it is so already. caller: for whom, as the audit has it. */
int cutoff_box(const struct place *p, bool on, const char *caller, struct pale_err *e) MUST_CHECK;

/* A new box that comes of another, and is none yet, is cut off if that one is. */
int cutoff_inherit(const struct place *from, const struct place *to, struct pale_err *e) MUST_CHECK;

/* Every box of the user. Each that could not be told is handed to trouble; it is cut off from its next start on all the same. */
struct cutoff_all {
    bool on;
    const char *caller;
    void (*trouble)(void *arg, const struct place *p, const struct pale_err *why);
    void *arg;
    unsigned live, stopped, once, failed; /* ret: how many of each */
    bool again;                           /* ret: it was so already */
};
int cutoff_all(struct cutoff_all *x, struct pale_err *e) MUST_CHECK;
