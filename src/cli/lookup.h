/* SPDX-License-Identifier: Apache-2.0 */
/* Finding the box a verb names. */
#pragma once

#include "box/place.h"
#include "cli/cli.h"

extern const struct option scope_options[];

enum place_scope lookup_scope(const struct args *a);

/* The box of that name; says on standard error if a project's box hides the user's. */
int lookup_box(const struct args *a, const char *name, struct place *ret, struct pale_err *e) MUST_CHECK;

/* The same, and one that has lost its folder, which is told. */
int lookup_any(const struct args *a, const char *name, struct place *ret, struct pale_err *e) MUST_CHECK;
