/* SPDX-License-Identifier: Apache-2.0 */
/* A launch: one start of a harness that stays on the host while all it executes is in a box. */
#pragma once

#include "agents/harness.h"
#include "agents/instructions.h"
#include "agents/shadow.h"
#include "agents/trial.h"
#include "cli/ensure.h"

struct launch {
    const struct harness *harness;
    struct args *args;
    char project[PATH_BYTES_MAX], program[PATH_BYTES_MAX], pale[PATH_BYTES_MAX];
    struct ensured box;
    struct shadow shadow;
    struct words mcp_env;
    struct buf instructions;
    struct wiring wiring;
    struct sha256 site; /* of the site's settings */
};

void launch_done(struct launch *l);
#define own_launch CLEANUP(launch_done) struct launch

/* Finds out all there is to know, and makes the wiring. with_words: the user's own, after the options. A dry one makes nothing. */
int launch_prepare(struct launch *l, struct args *a, const struct harness *h, bool dry, struct pale_err *e) MUST_CHECK;

/* What entries build from. */
struct wiring_facts launch_facts(const struct launch *l);

/* Prints what would be done. */
int launch_show(struct launch *l);

/* Starts it and waits. The exit status. */
int launch_go(struct launch *l, struct pale_err *e) MUST_CHECK;
