/* SPDX-License-Identifier: Apache-2.0 */
/* What the verbs about a box's past print, whoever has done it: this host, or a daemon elsewhere. Names from elsewhere are harmless already
 * (far_text). Each gives the exit status. */
#pragma once

#include "base/jsonread.h"
#include "box/snapline.h"
#include "box/snapshot.h"
#include "cli/cli.h"

int shown_past_taken(const struct args *a, const struct snapshot_taken *t);

/* kept: the snapshot that the box was until now; "" if nothing had changed. */
int shown_past_restored(const struct args *a, const char *box, const char *kept, uint64_t pause_us);

/* How many forks the verb is to make; false with the error if it says no such number. */
bool shown_past_count(const struct args *a, uint64_t *ret, struct pale_err *e);

/* Lists: begun, a line each, then listing_print. */
void shown_past_snapshots(struct listing *l, const struct args *a);
void shown_past_snapshot(struct listing *l, const struct snapline *s);
void shown_past_forks(struct listing *l, const struct args *a);
void shown_past_fork(struct listing *l, const char *name, const char *id, const char *scope);
int shown_past_discarded(const struct args *a, const char *kept);

/* What of an export's policy belongs to the host it is from; a list of texts, which are a stranger's. */
void shown_past_left_out(const struct jsonread *list);
