/* SPDX-License-Identifier: Apache-2.0 */
/* How a deed went, what the disk says, and what follows. For fleet alone. */
#pragma once

#include "fleet/course.h"

/* A deed has ended; text: what it tells. Followed by course_run. */
void outcome_done(struct core *c, struct box *b, const struct pale_err *how, const char *id, const char *text);

/* Whether there is a link is told, which somebody may wait for. Followed by course_run. */
void outcome_linked(struct core *c, struct box *b, bool up);

/* The box is, or is not, on the disk. Followed by course_run. */
void outcome_appear(struct core *c, struct box *b, const struct core_sight *s);
void outcome_vanish(struct core *c, struct box *b);

/* Is it on the disk now? As core_io's look. */
int outcome_look(struct core *c, const struct box *b, struct core_sight *ret);
