/* SPDX-License-Identifier: Apache-2.0 */
/* The true difference between two views of a tree, told one name at a time.
 *
 * How it works: in a folder, a name can only differ if a source holds it that is in the stack of one view and not of the other. So only
 * those sources are listed: a comparison of the base with the base and its layers costs as much as the layers hold, not the tree. Where a
 * folder is gone, new or hidden by an opaque one, the sources below count as such and their files are told as deleted or added.
 * The walk is iterative and opens each folder anew from its root by its path, so neither depth nor races cost descriptors; what it holds
 * is one sorted listing for each folder on the way down, out of one budget.
 *
 * What counts: kind, the bits of the mode (07777), content, the target of a link. Owners and times do not, so a file that was copied up and
 * is the same otherwise is no difference. Views may change while they are compared: a path that cannot be understood is told as
 * trouble, and the walk goes on. */
#pragma once

#include "tree/view.h"

enum compare_what {
    COMPARE_ADDED,
    COMPARE_CHANGED, /* content, perhaps mode as well */
    COMPARE_DELETED,
    COMPARE_MODE, /* nothing but the mode */
    COMPARE_LINK, /* where a link leads */
    COMPARE_TYPE, /* a file became a link, a folder a file … */
    COMPARE_TROUBLE,
    COMPARE_SAME, /* no difference: a file or link of the new view's own that is as the old view has it */
    COMPARE_WHAT_COUNT,
};

struct compare_record {
    const char *path; /* hostile bytes; gone after the call */
    enum compare_what what;
    struct view_place was, is;      /* LEAF_NONE where there is none */
    bool leaving;                   /* told before already: everything below this folder, which is gone, has been told since */
    const struct pale_err *trouble; /* why, with COMPARE_TROUBLE */
};

struct compare {
    const struct view *was_view, *is_view; /* sources of the same number are common as long as they are the same folder */
    const char *under;                     /* only this path and what lies below it; NULL or "": everything */
    bool tell_same;                        /* those that are the same are told as well */
    bool tell_leaving;                     /* folders that are gone are told again when everything below them has been */
    /* Other than 0 ends the walk and is its result. */
    int (*tell)(void *arg, const struct compare_record *r, struct pale_err *e);
    void *arg;
};

/* Tells every difference in the order of paths, compared step by step as bytes; a folder comes before what it holds. */
int compare_run(const struct compare *c, struct pale_err *e) MUST_CHECK;

/* "added", "changed", "deleted", "mode", "link", "type", "trouble". */
const char *compare_word(enum compare_what what);
