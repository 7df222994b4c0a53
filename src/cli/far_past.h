/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs about a box's past, done by a daemon elsewhere. Each gives the exit status. */
#pragma once

#include "cli/cli.h"

int far_snapshot(struct args *a);
int far_snapshots(struct args *a);
int far_restore(struct args *a);
int far_fork(struct args *a);
int far_gc(struct args *a);
int far_diff(struct args *a);
int far_apply(struct args *a);
int far_discard(struct args *a);
