/* SPDX-License-Identifier: Apache-2.0 */
/* Lookouts: the daemon's link to each live keeper, by which it knows what runs. */
#pragma once

#include "fleet/fleet.h"

void lookout_init(struct fleet *f);
void lookout_done(struct fleet *f);

/* Connects to the box's keeper a moment from now, anew if there is a link; core_up or core_down follows. */
void lookout_want(struct fleet *f, const char *id);

/* Connects if there is no link. */
void lookout_try(struct fleet *f, const char *id);

void lookout_drop(struct fleet *f, const char *id);
