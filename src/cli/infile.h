/* SPDX-License-Identifier: Apache-2.0 */
/* A file that a verb reads from beginning to end. */
#pragma once

#include "base/err.h"

/* path: "-" for standard input, which may be what it likes. What is no file, or stands still, like a FIFO, is refused before it is waited
 * for. */
int infile_open(const char *path, int *ret, struct pale_err *e) MUST_CHECK;
