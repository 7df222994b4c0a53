/* SPDX-License-Identifier: Apache-2.0 */
/* Finding, making and stopping the box a verb names. */
#pragma once

#include "box/place.h"
#include "cli/cli.h"
#include "policy/policy.h"

extern const struct option scope_options[];

enum place_scope lookup_scope(const struct args *a);

/* The box of that name; says on standard error if a project's box hides the user's. */
int lookup_box(const struct args *a, const char *name, struct place *ret, struct pale_err *e) MUST_CHECK;

/* Makes folders and writes the policy. On failure nothing is left. If the box is not started at once the policy must be durable;
 * else its keeper sees to that. */
int lookup_make(const char *name, enum place_scope scope, const struct policy *p, bool durable, struct place *ret,
                struct pale_err *e) MUST_CHECK;

/* Removes what lookup_make made, because the box did not start. It may be up and only its word not have reached us. */
void lookup_take_back(const struct place *p);

/* The policy it was made with. */
int lookup_policy(const struct place *p, struct policy *ret, struct pale_err *e) MUST_CHECK;

/* Does its policy have a line that begins so? Cheaper than reading it all. */
int lookup_has_line(const struct place *p, const char *begin, bool *ret, struct pale_err *e) MUST_CHECK;

/* Stops it if it runs, and waits until its keeper is gone. */
int lookup_stop(const struct place *p, struct pale_err *e) MUST_CHECK;
