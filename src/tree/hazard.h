/* SPDX-License-Identifier: Apache-2.0 */
/* What the host would run or obey if it landed: one class and one reason for a change that a person must look at.
 *
 * How it works: names are compared as the most careless reader would take them: in either case, without trailing dots, blanks and stream
 * names, without marks that show nothing, with the two letters that fold into ASCII. A rule names components that stand next to each other,
 * at any depth; what lies beneath counts too. The table is the threats' list (agents, git, editors, shells, builds, CI), and it is a net
 * for review, not a wall: what a build of the project runs is the project's own. Pure, but for hazard_is_repository. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "policy/policy.h"
#include "tree/leaf.h"

enum hazard_class {
    HAZARD_NONE,
    HAZARD_GUARD,      /* a name of the policy's guard list */
    HAZARD_GIT,        /* hooks, config, attributes, submodules, a repository inside the tree */
    HAZARD_AGENT,      /* settings, hooks and instructions of agents */
    HAZARD_EDITOR,     /* tasks and settings that run when a folder is opened */
    HAZARD_SHELL,      /* read on entering a folder or starting a shell or a debugger */
    HAZARD_CI,         /* run by a server with its own secrets */
    HAZARD_PACKAGE,    /* run by an install, a build or a test */
    HAZARD_SETID,      /* runs as somebody else; the bits are never landed */
    HAZARD_LINK,       /* leads out of the tree, or to one of the above */
    HAZARD_NAME,       /* is not what it looks like */
    HAZARD_EXECUTABLE, /* new, and can be run */
    HAZARD_CLASS_COUNT,
};

struct hazard_question {
    const char *path;      /* relative to the tree's root */
    enum leaf_kind kind;   /* LEAF_NONE: it is deleted */
    mode_t mode, was_mode; /* was_mode: 0 if it is new */
    const void *head;      /* of a file, its first bytes; of a link, where it leads */
    size_t head_len;
    bool is_new;        /* there was no file before; with is_new or without, a file that could be run before is no new one */
    bool in_repository; /* hazard_is_repository for its folder or one above */
    const struct policy_strings *guard; /* may be NULL */
};

struct hazard {
    enum hazard_class class;
    const char *reason; /* one line for people; constant text */
};

/* How much of a file is worth handing over. */
#define HAZARD_HEAD_BYTES 64

struct hazard hazard_of(const struct hazard_question *q);

/* "git", "agent" … for JSON and tables; "none". */
const char *hazard_word(enum hazard_class class);

/* Would git take this folder for a repository, by what any of these trees holds in it? One without ".git" runs its hooks and config all
 * the same. */
bool hazard_is_repository(const int *tree_fds, size_t count, const char *folder);
