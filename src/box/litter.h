/* SPDX-License-Identifier: Apache-2.0 */
/* What the dead have left beside boxes: files they were writing, images they were building, and what was taken out of live projects for
 * one-shot boxes, which nobody can ask back any more. In doubt it stays. */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "box/place.h"

/* So long after the last thing was taken into it a quarantine of a one-shot box goes. */
#define LITTER_QUARANTINE_DAYS 30

/* In the state folder of a box: files that were to replace others, of writers that are gone. *ret grows by how many. */
int litter_files(const struct place *p, bool only_counts, unsigned *ret, struct pale_err *e) MUST_CHECK;

/* Staging folders of builders that are gone. */
int litter_staging(bool only_counts, unsigned *ret, struct pale_err *e) MUST_CHECK;

/* Quarantines of one-shot boxes, unless the box still runs. */
int litter_quarantines(bool only_counts, unsigned *ret, struct pale_err *e) MUST_CHECK;
