/* SPDX-License-Identifier: Apache-2.0 */
/* What a keeper hears from whoever has started it before its box can be (box/reach.h, reach_start_next), in this order. One that hears
 * something else, or that the other has hung up, is not needed any more: PALE_GONE. So is one that has the box's lock and hears nothing for
 * half a minute. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "keeper/keeper.h"

/* How the list of layers will look; empty: that is not known. */
int succession_list(struct buf *ret, struct pale_err *e) MUST_CHECK;

/* The box before is gone, and this one ours: its lock is held as long as the descriptor is open. */
int succession_lock(const struct keeper *k, int *ret_fd, struct pale_err *e) MUST_CHECK;

/* The list of layers is the one to go by. If we have built by one already it is the same, or all was in vain: PALE_BUSY. */
int succession_saved(const struct keeper *k, struct pale_err *e) MUST_CHECK;

/* … and on the disk. */
int succession_kept(struct pale_err *e) MUST_CHECK;
