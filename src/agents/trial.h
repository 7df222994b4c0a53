/* SPDX-License-Identifier: Apache-2.0 */
/* A trial: the harness is started once, wired as it will be, against a stub of a model, and what it offers the model is compared with
 * what we expect. A good one is remembered until the harness, pale or the site's settings change. */
#pragma once

#include "agents/harness.h"
#include "base/sha256.h"

#define TRIAL_MS 30000
#define TRIAL_TOOLS_MAX 128

struct trial {
    char tool[TRIAL_TOOLS_MAX][128];
    size_t count;
    char version[32];
    bool is_remembered; /* nothing was run */
};

/* facts: but for shadow, work, home and model_url, which are the trial's own. more: what else a remembered trial depends on. force: do
 * not ask the memory. Fails, naming the tool, if one is offered that is not expected, or the box's exec is not. */
int trial_run(const struct harness *h, const struct wiring_facts *facts, const struct sha256 *more, bool force, struct trial *ret,
              struct pale_err *e) MUST_CHECK;

/* The version that the program says it is, "" if it says none. */
int trial_version(const struct harness *h, const char *program, const char *project, char ret[32], struct pale_err *e) MUST_CHECK;

/* a < b: negative; by their numbers. */
int trial_compare_versions(const char *a, const char *b);
