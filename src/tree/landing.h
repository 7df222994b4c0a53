/* SPDX-License-Identifier: Apache-2.0 */
/* Apply: the differences between two views of a box, landed in the user's real tree.
 *
 * How it works: the comparison is walked once. Each difference is copied into the hidden folder first (tree/stage.h), because the box may
 * go on writing: what is classed, asked about and compared is the very copy that lands. Then three-way (tree/threeway.h): the user's tree
 * must still hold what the box began with. Jobs are gathered, made durable together, and each is one exchange of names. Never landed:
 * devices, FIFOs, sockets, set-id bits, attributes. Who owned a file goes on owning it; what is new belongs to the owner of its folder.
 *
 * What did the box begin with? Where the old view is not the target, it says so itself. In review mode the lower layer IS the target,
 * which the user goes on editing, so the old view shows the user's newer work as if the box had started from it. Then, for each path:
 *   1. a copy in origin_fd, made when the box first saw the file, is what it began with;
 *   2. a target whose ctime is older than `since` (a moment at or before the box's first mount) has not been touched by anyone since, so it
 *      is what the box began with. ctime cannot be set by hand; a clock that was set back is the one way to fool it;
 *   3. with birth_counts, a target whose ctime is older than the birth (btime) of the oldest entry that the layers have at this path, or at
 *      the nearest folder above. This proves that the box replaced just what stands there now, but not that it had read it: an agent that
 *      read early and wrote late would undo what the user wrote between. So it is off unless the caller says so;
 *   4. otherwise it is not known: a conflict, unless the target has the box's version already. Nothing of the user's is overwritten on a
 * guess. Times are compared with a margin of LANDING_TICK_MS, as file systems stamp with a clock that only ticks. A target that was written
 * within that time is looked at again after it, since a further write might leave no trace. That something is there now and was not in
 * either view needs no proof: a new name never replaces anything. */
#pragma once

#include "policy/policy.h"
#include "tree/compare.h"
#include "tree/hazard.h"

#define LANDING_TICK_MS 20

enum landing_result {
    LANDING_LANDED,
    LANDING_MERGED,
    LANDING_SAME,     /* the target has it already */
    LANDING_CONFLICT, /* untouched */
    LANDING_HELD,     /* the host would obey it, and include_guarded was not given */
    LANDING_REFUSED,  /* a kind that is never landed */
    LANDING_SKIPPED,  /* ask said no */
    LANDING_FAILED,   /* untouched; the reason says why */
    LANDING_RESULT_COUNT,
};

struct landing_report {
    const char *path; /* hostile bytes; gone after the call */
    enum compare_what what;
    enum leaf_kind was_kind, is_kind;
    enum landing_result result;
    struct hazard hazard; /* of what was landed or held */
    const char *reason;   /* for people; "" if there is nothing to say */
};

struct landing {
    int target_fd;
    const struct view *was_view, *is_view;
    int origin_fd;         /* -1: none */
    struct timespec since; /* zero: not known */
    bool birth_counts;
    const char *const *paths; /* relative, normal; what lies below them counts */
    size_t path_count;        /* 0: everything */
    const struct policy_strings *guard;
    bool include_guarded;
    bool dry_run; /* nothing is written; tells what would become */
    bool durable; /* on the disk before it has its name, and when the run is over */
    /* Asked before each change that would land, with its report as it would be and its content (-1 but for a file). NULL: yes. */
    bool (*ask)(void *arg, const struct landing_report *r, int content_fd);
    void (*tell)(void *arg, const struct landing_report *r);
    void *arg;
    /* How it went. */
    uint64_t count[LANDING_RESULT_COUNT];
    unsigned kept; /* things of an interrupted landing that are left in .pale-landing, as they are not ours to remove */
};

/* An error ends the run between two changes; each that was told as landed has landed. Conflicts and the like are no errors. */
int landing_run(struct landing *l, struct pale_err *e) MUST_CHECK;

/* "landed", "merged", "same", "conflict", "held", "refused", "skipped", "failed". */
const char *landing_word(enum landing_result result);
