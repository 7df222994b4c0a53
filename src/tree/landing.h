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
 *   1. what was landed there last (origin.find_landed), or a copy in origin_fd, is what it began with;
 *   2. a target whose ctime is not newer than the birth of the oldest layer that says something about the path (born_ns, or `since` for
 *      all), in folders that were not moved since, has not been touched by anyone since, so it is what the box began with. ctime cannot be
 * set by hand; a clock that was set back is the one way to fool it. What is not there now was not there then if its folder has not been
 * touched;
 *   3. what is known of the project's start (origin.find_start);
 *   4. with birth_counts, a target whose ctime is older than the birth (btime) of the oldest entry that the layers have at this path, or at
 *      the nearest folder above. This proves that the box replaced just what stands there now, but not that it had read it: an agent that
 *      read early and wrote late would undo what the user wrote between. So it is off unless the caller says so;
 *   5. otherwise it is not known: a conflict, unless the target has the box's version already. Nothing of the user's is overwritten on a
 * guess. Times are compared with a margin of LANDING_TICK_MS, as file systems stamp with a clock that only ticks. A target that was written
 * within that time is looked at again after it, since a further write might leave no trace. That something is there now and was not in
 * either view needs no proof: a new name never replaces anything. */
#pragma once

#include "policy/policy.h"
#include "tree/compare.h"
#include "tree/hazard.h"
#include "tree/threeway.h"

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

/* Whoever knows what the box began with, and writes down what has landed. All of them may be NULL. */
struct landing_origin {
    /* What was landed at path last, if that was at born_ns or later; false: nothing was, and *ret is as before. */
    int (*find_landed)(void *arg, const char *path, uint64_t born_ns, bool *ret_known, struct threeway_thing *ret, struct pale_err *e);
    /* What stood there when the project began. */
    int (*find_start)(void *arg, const char *path, bool *ret_known, struct threeway_thing *ret, struct pale_err *e);
    /* A note of the box's version, before it lands (NULL: none is taken; freed by the landing), and the word that it has. */
    char *(*note)(void *arg, const char *path, const struct threeway_thing *theirs);
    int (*noted)(void *arg, const char *note, struct pale_err *e);
    /* Has the user told git to ignore it? */
    bool (*is_ignored)(void *arg, const char *path, bool folder);
    /* Told of each base that is found, for whoever wants them; known false: it is not. */
    int (*tell_base)(void *arg, const char *path, bool known, const struct threeway_thing *base, struct pale_err *e);
    void *arg;
};

/* What becomes of a conflict. */
enum landing_prefer {
    LANDING_PREFER_NONE,   /* it stays one */
    LANDING_PREFER_THEIRS, /* the box's version lands */
    LANDING_PREFER_OURS,   /* the user's stays, and counts as agreed on */
};

struct landing {
    int target_fd;
    const struct view *was_view, *is_view;
    int origin_fd;           /* -1: none */
    struct timespec since;   /* zero: not known */
    const uint64_t *born_ns; /* of each layer of is_view, in place of since: nothing in it is older; 0: not known */
    struct landing_origin origin;
    enum landing_prefer prefer;
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
    /* How it went, in sum with what stood there before. */
    uint64_t count[LANDING_RESULT_COUNT];
    unsigned kept; /* things of an interrupted landing that are left in .pale-landing, as they are not ours to remove */
};

/* An error ends the run between two changes; each that was told as landed has landed. Conflicts and the like are no errors. */
int landing_run(struct landing *l, struct pale_err *e) MUST_CHECK;

/* "landed", "merged", "same", "conflict", "held", "refused", "skipped", "failed". */
const char *landing_word(enum landing_result result);
