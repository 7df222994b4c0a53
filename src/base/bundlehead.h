/* SPDX-License-Identifier: Apache-2.0 */
/* The heads of which a bundle consists, and what every reader of one asks of them: base/bundle, which makes files of a bundle, and
 * net/tarball, which makes a tar archive of it and back.
 *
 * A bundle is one entry, or a folder's head, its entries and a leave, and then an end. A head is 20 bytes, numbers in little endian:
 * type (1), length of the name (1), mode (2), time (8), size (8); then the name. After a file's head follow as many bytes as its size
 * says, after a link's its target. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BUNDLE_DEPTH_MAX 128 /* folders in one another, with the one at the top */
#define BUNDLE_NAME_MAX 255u /* the kernel's own limit */
#define BUNDLE_HEAD_BYTES 20u
#define BUNDLE_HEAD_MAX (BUNDLE_HEAD_BYTES + BUNDLE_NAME_MAX)

enum bundle_type { BUNDLE_FILE = 1, BUNDLE_FOLDER, BUNDLE_LINK, BUNDLE_LEAVE, BUNDLE_END, BUNDLE_ERROR };

struct bundle_head {
    enum bundle_type type;
    unsigned mode; /* at most 0777 */
    int64_t mtime;
    uint64_t size;    /* of a file, or of a link's target */
    uint8_t name_len; /* none but for a file, folder or link */
};

/* Writes a head and its name, of h->name_len bytes. Returns the length. */
size_t bundle_head_put(uint8_t ret[BUNDLE_HEAD_MAX], const struct bundle_head *h, const char *name);

/* Reads a head, without its name; false if there is none like it. */
bool bundle_head_parse(const uint8_t p[BUNDLE_HEAD_BYTES], struct bundle_head *ret);

/* One step of a path, which is neither "." nor "..". */
bool bundle_is_name(const char *name, size_t n);

/* Does a link's target stay inside the bundle? depth: the folders around the link, so 0 for one that is the bundle. */
bool bundle_is_inner_link(const char *target, int depth);
