/* SPDX-License-Identifier: Apache-2.0 */
/* An errand: a function run by a child in a user namespace that has the ids of a box and nothing else of its wall, for work on
 * files that belong to those ids. */
#pragma once

#include "base/err.h"
#include "confine/ids.h"

typedef int errand_fn(void *arg, struct pale_err *e);

/* Runs fn in a child that keeps our own id and has every capability over the ids in the map; returns what it returned. Only our
 * descriptors and what they lead to are for it. Fails as the making of a user namespace does. */
int errand_run(const struct ids *ids, errand_fn *fn, void *arg, struct pale_err *e) MUST_CHECK;
