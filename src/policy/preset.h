/* SPDX-License-Identifier: Apache-2.0 */
/* Presets: egress rules under a name, with a version. Those of pale are files in policy/presets that are built in; a user's stand in his
 * configuration (box/intake.h).
 *
 * A file has lines: "version N" first, then rules as a flag takes them and "include NAME" for the rules of a preset of pale; '#' begins a
 * line for people. A policy holds the rules themselves, so that a preset that changes later changes no box; what they came from stands
 * beside them as NAME@VERSION, which opens nothing. */
#pragma once

#include "policy/policy.h"

#define PRESET_NAME_MAX 64

/* The text of a preset of pale, or NULL. */
const char *preset_text(const char *name);

/* The names of pale's presets, in order; NULL past the end. */
const char *preset_at(size_t i);

/* May a preset have this name? */
bool preset_is_name(const char *s, size_t len);

/* Adds the rules of this text to the policy, and NAME@VERSION in place of NAME; the presets that it includes likewise. If the policy says
 * NAME@VERSION already the versions must agree. On failure the policy is good for nothing; the error names the line. */
int preset_apply(struct policy *p, const char *name, const char *text, size_t len, struct pale_err *e) MUST_CHECK;

/* The first preset of the policy that was asked for and not applied yet, or NULL. */
const char *preset_pending(const struct policy *p);
