/* SPDX-License-Identifier: Apache-2.0 */
/* The process tree of the box, read from its /proc: who descends from a runner, and what they have used. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* More processes than this in one box are never looked at one by one; see tree_kill. */
#define TREE_MAX 8192

struct tree {
    int count;
    bool overflow;
    struct tree_process {
        pid_t pid, parent;
        uint64_t ticks;                            /* CPU of the process and of the children it has waited for */
        enum { KIN_UNKNOWN, KIN_YES, KIN_NO } kin; /* after tree_mark: a descendant? */
        int depth;                                 /* after tree_depths: how many are above it */
    } process[TREE_MAX];
};

/* Reads /proc. proc_fd is a directory descriptor of it. */
bool tree_read(struct tree *t, int proc_fd);

/* Marks every descendant of pid (not pid itself); returns how many. */
int tree_mark(struct tree *t, pid_t pid);

/* Sets each process's depth; returns the greatest. */
int tree_depths(struct tree *t);

/* CPU time of pid's dead and living descendants in milliseconds; call after tree_mark(pid). */
uint64_t tree_cpu_ms(const struct tree *t, pid_t pid);
