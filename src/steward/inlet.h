/* SPDX-License-Identifier: Apache-2.0 */
/* Frames that paled sends to a deed, read one by one and no byte further: what comes after the order is the deed's to read. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "wire/frame.h"

/* Blocks. in holds the frame until the next; what it held before is dropped. */
int inlet_frame(int fd, struct buf *in, struct frame *ret, struct pale_err *e) MUST_CHECK;
