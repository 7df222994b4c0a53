/* SPDX-License-Identifier: Apache-2.0 */
/* Presets by name: those of pale, and the user's own in $XDG_CONFIG_HOME/pale/presets (~/.config/pale/presets). A user's file cannot take a
 * name of pale's. */
#pragma once

#include "base/buf.h"
#include "policy/policy.h"

/* The text of a preset; path is that of its file, or "" if it is one of pale's. PALE_NOT_FOUND names what there is. */
int presetfile_read(const char *name, struct buf *ret_text, char *path, size_t cap, struct pale_err *e) MUST_CHECK;

/* Applies NAME, or NAME@VERSION if that is the version it has here (policy/preset.h). */
int presetfile_apply(struct policy *p, const char *item, struct pale_err *e) MUST_CHECK;

/* Applies whatever the policy names. */
int presetfile_apply_all(struct policy *p, struct pale_err *e) MUST_CHECK;

/* Calls fn for each name, pale's first, then the user's in order of their names; stops at a negative answer. */
int presetfile_each(int (*fn)(void *arg, const char *name, struct pale_err *e), void *arg, struct pale_err *e) MUST_CHECK;
