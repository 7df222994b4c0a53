/* SPDX-License-Identifier: Apache-2.0 */
/* Paths as one word of a line in our own lists: printable ASCII stands for itself, every other byte and '%' is %xx. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"

void pathtext_write(struct buf *out, const char *path);

/* In place. False if it is none, or no path as view_is_path has it, or empty. */
bool pathtext_read(char *word);
