/* SPDX-License-Identifier: Apache-2.0 */
/* The receipt of a box's last start, as its keeper left it in the state folder. */
#pragma once

#include "base/buf.h"
#include "box/place.h"

/* Leaves ret empty if the box was never started. */
void shown_receipt_read(const struct place *p, struct buf *ret);

/* One line of `pale inspect`. */
void shown_receipt_line(struct buf *receipt);
