/* SPDX-License-Identifier: Apache-2.0 */
/* Seclusion: a process that is about to read a tree that a box wrote first gives up what it does not need for that, so that whoever finds
 * a mistake in the reading has gained nothing but what was in the tree.
 *
 * How it works: the folders are opened before. Then no new privilege can be had, no core file is left, nobody looks into the process, all
 * descriptors are closed but those that are named, Landlock leaves the folders alone (no other file can be opened, no program run), and a
 * list of system calls leaves what reading a tree takes, or writing one. For good: a process that has more to do afterwards has a child do
 * the work, and takes its answer for what a box might have written. A kernel without Landlock has the list alone, as elsewhere. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "confine/landlock.h"

struct seclusion {
    const struct landlock_place *places; /* folders; one that is filled or written makes it a writer */
    size_t place_count;
    const int *kept; /* descriptors that stay open besides those and 0 to 2 */
    size_t kept_count;
};

/* The calling process goes into seclusion. After a failure it may be half in: it ends. */
int seclusion_enter(const struct seclusion *s, struct pale_err *e) MUST_CHECK;

/* The first step alone, for a process that keeps its rights: every descriptor is closed but those that are named and 0 to 2. */
int seclusion_close_others(const struct seclusion *s, struct pale_err *e) MUST_CHECK;

/* A child in seclusion. It ends with its parent. */
struct secluded {
    pid_t pid;
    int fd;
};

/* One step of its work. ret: room of SECLUSION_ANSWER_MAX bytes for what it finds, zeroed. */
typedef int seclusion_fn(void *arg, unsigned step, void *ret, struct pale_err *e);
#define SECLUSION_ANSWER_MAX 128 /* a digest and a few numbers */

/* Starts a child for fn. What arg leads to is the child's as it is now. */
int seclusion_start(struct secluded *c, const struct seclusion *s, seclusion_fn *fn, void *arg, struct pale_err *e) MUST_CHECK;
/* Has it do a step, and waits. Returns what fn returned; *ret: the first n bytes of what it found, to be checked by the caller. */
int seclusion_step(struct secluded *c, unsigned step, void *ret, size_t n, struct pale_err *e) MUST_CHECK;
/* The same in two, for who has something else to do meanwhile. */
int seclusion_ask(struct secluded *c, unsigned step, struct pale_err *e) MUST_CHECK;
int seclusion_answer(struct secluded *c, void *ret, size_t n, struct pale_err *e) MUST_CHECK;
void seclusion_end(struct secluded *c);
#define own_secluded CLEANUP(seclusion_end) struct secluded

/* All of it, for work of one step. */
int seclusion_run(const struct seclusion *s, seclusion_fn *fn, void *arg, void *ret, size_t n, struct pale_err *e) MUST_CHECK;
