/* SPDX-License-Identifier: Apache-2.0 */
/* The row of a box in the database: kept in step, tried again where it must change though the database will not. For fleet alone. */
#pragma once

#include "fleet/course.h"

/* Changes the row, or fails and changes nothing. */
int terms_put(struct core *c, struct box *b, const struct core_terms *t, struct pale_err *e) MUST_CHECK;

/* These always succeed here; the database follows when it can. */
void terms_forget(struct core *c, struct box *b);
void terms_restore(struct core *c, struct box *b); /* the row that was before the deed */
void terms_sync(struct core *c, struct box *b);    /* now, or the next pause begins */

/* The box is removed for certain: what is left is the memory of its key, if it has one and is young enough. */
void terms_bury(struct core *c, struct box *b);

/* The box is there: is it the one that its row is about? An intention is met by what we have made ourselves, or what appears while a
 * deed may be under way; later it is somebody else's. */
void terms_bind(struct core *c, struct box *b, bool made);

/* A box that somebody else has renamed keeps what was said of it: its time to live, its key. born: of the box that is now seen as b. */
void terms_follow(struct core *c, struct box *b, uint64_t born);

/* The box is not there and nobody waits: is its row good for anything yet? */
void terms_weed(struct core *c, struct box *b);

/* Makes room for one more memory of this tenant. */
void terms_thin(struct core *c, const char *tenant);

/* May a deed that nobody listens to still change this box? */
bool terms_in_doubt(const struct core *c, const struct box *b);

/* Is the box that was born so there under another name than b's, or may it be, because a rename is not known to have ended? */
bool terms_has_twin(const struct core *c, const struct box *b, uint64_t born);

/* Did the same request put this row? */
bool terms_are_of(const struct core_terms *t, const struct wait *w);

/* A pause that grows with every failure. */
void terms_pause(struct core *c, struct pause *p);
