/* SPDX-License-Identifier: Apache-2.0 */
/* An attempt: something the kernel may refuse, really tried, in a child that takes the consequences.
 *
 * How it works: the child is made in the namespaces that are asked for, with ids as the wall gives them, runs one function and
 * sends its answer over a pipe. What it changed goes with it. One that hangs or dies is a missing mechanism. */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "confine/ids.h"

enum finding_state { FINDING_OK, FINDING_DEGRADED, FINDING_MISSING, FINDING_COUNT };

struct answer {
    enum finding_state state;
    char detail[240]; /* one line */
};

struct attempt {
    struct ids ids; /* of the namespace, if there is one */
    const void *arg;
    struct answer answer;
};

typedef void attempt_fn(struct attempt *a);

/* Runs fn in a child made with these clone flags (0, or CLONE_NEWUSER with others). */
void attempt_run(uint64_t flags, attempt_fn *fn, const void *arg, struct answer *ret);

/* Fills an answer. attempt_os adds what errno means; attempt_err takes an error's text. */
void attempt_say(struct answer *ret, enum finding_state state, const char *fmt, ...) PRINTF_LIKE(3, 4);
void attempt_os(struct answer *ret, enum finding_state state, const char *what);
void attempt_err(struct answer *ret, enum finding_state state, const struct pale_err *e);
