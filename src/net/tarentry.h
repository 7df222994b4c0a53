/* SPDX-License-Identifier: Apache-2.0 */
/* The headers of one entry of a tar archive: ustar, and pax records before it where a path, a target, a size or a time does not fit.
 *
 * Pure. Everything belongs to 0, without names of users. */
#pragma once

#include "base/buf.h"
#include "base/limits.h"
#include "net/tarhead.h"

/* Path, target, size and time. */
#define TARENTRY_RECORDS_MAX (2 * PATH_BYTES_MAX + TAR_BLOCK)
#define TARENTRY_BYTES_MAX (2 * TAR_BLOCK + TARENTRY_RECORDS_MAX)

/* Writes them at ret, by the type, mode, size and time of h; path and target are shorter than PATH_BYTES_MAX, and a folder's path ends in
 * '/'. Returns how many bytes they are, which is whole blocks. */
size_t tarentry_put(uint8_t ret[TARENTRY_BYTES_MAX], const struct tar_head *h, const char *path, const char *target);

/* The same added to out, with more records, which are ready. */
void tarentry_add(struct buf *out, const struct tar_head *h, const char *path, const char *target, const struct buf *records);
