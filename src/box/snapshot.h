/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots: keeping a box as it is, and going back. Blocks.
 *
 * How it works: a box in which nothing runs is stopped, its open layer becomes a closed one, and it is started again on top of that;
 * all of it costs the same for a byte and for a terabyte. Every change takes place when the list of layers is replaced (box/stack.h):
 * who is killed before leaves the box as it was, and folders that the next `gc` takes away. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "box/place.h"
#include "box/stack.h"

/* Automatic snapshots are kept: the newest so many. What a person asked for stays until he removes it. */
#define SNAPSHOT_AUTOMATIC_MAX 10

struct snapshot_taken {
    char name[SNAPSHOT_NAME_MAX + 1];
    uint64_t pause_us; /* how long the box could not work; 0: it was not running, or nothing had changed */
    bool changed;      /* there was something to keep since the last one */
    bool copied;       /* the box worked: what it had written was copied */
};

/* Keeps the box as it is now. name: NULL for one of ours. Automatic ones push out the oldest of their kind, and are not made where
 * nothing has changed since the last of any kind; nor, but PALE_BUSY, of a box in which something runs. */
int snapshot_take(const struct place *p, const char *name, bool automatic, const char *caller, struct snapshot_taken *ret,
                  struct pale_err *e) MUST_CHECK;

/* Makes the box as it was. What it is now is kept first, automatically, so that this too can be undone: *ret tells under which name;
 * "" if nothing had changed. PALE_BUSY if something runs in the box, unless force ends it. */
int snapshot_restore(const struct place *p, const char *name, bool force, const char *caller, struct snapshot_taken *ret,
                     struct pale_err *e) MUST_CHECK;

/* Forgets a snapshot. What only it stood on goes with the next `gc`. */
int snapshot_remove(const struct place *p, const char *name, const char *caller, struct pale_err *e) MUST_CHECK;

/* After a box was stopped: an automatic snapshot, where it keeps any and something has changed. */
int snapshot_autosave(const struct place *p, const char *caller, struct pale_err *e) MUST_CHECK;
