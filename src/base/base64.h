/* SPDX-License-Identifier: Apache-2.0 */
/* Base64, as RFC 4648 has it: padded, no blanks, no bits left over. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"

bool base64_read(const char *text, struct buf *ret);
void base64_write(const void *p, size_t n, struct buf *ret);
