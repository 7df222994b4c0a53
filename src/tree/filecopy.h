/* SPDX-License-Identifier: Apache-2.0 */
/* The content of one regular file put into another: cloned where the file system can, else copied, with its holes.
 *
 * The source may be written or grow meanwhile, so no more than it had at the start is copied; what was cut off since is a hole. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct filecopy_count {
    uint64_t bytes;  /* copied or cloned, without holes */
    uint64_t cloned; /* of these */
};

/* Fills the empty file out_fd. Its offset and that of in_fd are of no account. */
int filecopy_run(int in_fd, int out_fd, struct filecopy_count *count, struct pale_err *e) MUST_CHECK;
