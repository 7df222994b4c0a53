/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of time in egress rules: "mon-fri/08:00-18:00", "sat,sun/00:00-24:00", "08:00-18:00" for every day. Days and hours are those of
 * UTC: a host's time zone moves twice a year, and a process that is locked up has none. One that goes beyond midnight is two. */
#pragma once

#include "policy/policy.h"

#define WEEK_MINUTES 10080u

/* Between days and hours stands a '/' or a blank. */
int window_parse(const char *s, size_t len, struct policy_window *ret, struct pale_err *e) MUST_CHECK;
void window_text(const struct policy_window *w, struct buf *out);

/* Is it in force in this minute of the week (0 is Monday, 00:00 UTC)? */
bool window_holds(const struct policy_window *w, unsigned minute);

/* Is all of inner within outer; have they a minute in common? */
bool window_covers(const struct policy_window *outer, const struct policy_window *inner);
bool windows_meet(const struct policy_window *a, const struct policy_window *b);
