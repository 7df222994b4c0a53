/* SPDX-License-Identifier: Apache-2.0 */
/* The harvest: what a box has made of a project for review, landed in the user's own tree. */
#pragma once

#include "base/json.h"
#include "box/place.h"
#include "box/stack.h"
#include "tree/landing.h"

struct harvest {
    const char *const *paths; /* as review_path takes them; what lies below them counts */
    size_t path_count;        /* 0: everything */
    const char *cwd;          /* what they are relative to, if it lies in the project; may be NULL */
    bool include_guarded, dry_run;
    bool ignored; /* what git ignores lands too */
    enum landing_prefer prefer;
    bool asks_git;      /* git is asked for what files held when the box began, and for what it ignores */
    int kept_fd;        /* stays open for whoever tells; -1: none but the standard ones */
    bool stopped;       /* set by ask: nothing more is tried */
    const char *caller; /* as the box's log is to have it */
    /* As those of struct landing. */
    bool (*ask)(void *arg, const struct landing_report *r, int content_fd);
    void (*tell)(void *arg, const struct landing_report *r);
    void *arg;
    uint64_t count[LANDING_RESULT_COUNT]; /* how it went */
};

/* Lands it, durably; the box's log has it before. The process goes into seclusion for it, and stays there: it can tell how it went, and
 * end. An error ends it between two files: those that were told as landed have. PALE_BAD_INPUT
 * if the project is not for review. */
int harvest_run(const struct place *p, struct harvest *h, struct pale_err *e) MUST_CHECK;

/* What the box's versions of its project's files began with, as a closed layer has them: a text for each, as landed_describe has it, with a
 * newline, of those of which it is known. Nothing if they are more than an export carries. A child reads what the box wrote. */
int harvest_bases(const struct place *p, const struct stack *s, int layer, struct buf *out, struct pale_err *e) MUST_CHECK;

/* How many files still wait for somebody to decide. */
uint64_t harvest_left(const struct harvest *h);

/* What became of one file, as an object of a list; and the numbers, into an open object. */
void harvest_write(struct json *j, const struct landing_report *r);
void harvest_write_counts(struct json *j, const struct harvest *h);
