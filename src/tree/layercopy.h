/* SPDX-License-Identifier: Apache-2.0 */
/* A copy of an open layer, for the snapshot of a box that goes on working.
 *
 * How it works: the first pass copies everything while the box writes, and remembers inode, ctime and size of what it saw. The second runs
 * while the box is frozen and copies only what differs from that, what is new, and takes away what is gone; the pause is as long as the
 * second pass. What was written within a tick before it was looked at is never taken for unchanged, since a further write could leave the
 * same time. Stores through a shared mapping are only stamped when the page was clean, so files of the last minute are sent to the disk
 * before they are looked at: the next store is stamped then. In memory (tmpfs) nothing ever stamps them, so a layer there is copied by the
 * second pass alone.
 *
 * Kept: kind (whiteouts, FIFOs and sockets too), mode, owner, mtime, links among the files of the layer, holes, and every user. attribute
 * with the overlay's own. A device is poison and ends the copy. The box's tree is hostile and may change in the first pass, which passes
 * over what vanishes; in the second nothing may. */
#pragma once

#include "base/err.h"
#include "tree/filecopy.h"

struct layercopy;

struct layercopy_count {
    uint64_t files, folders, links, others; /* looked at, in the last pass */
    uint64_t copied;                        /* files whose content was copied or cloned, in both passes */
    uint64_t again;                         /* entries that the second pass made anew */
    uint64_t removed;                       /* by the second pass */
    uint64_t hard_links;
    struct filecopy_count content;
};

/* to_fd is an empty folder that only we can reach, on the same or another file system. Both stay the caller's. */
int layercopy_new(int from_fd, int to_fd, struct layercopy **ret, struct pale_err *e) MUST_CHECK;
void layercopy_free(struct layercopy *c);

/* The first may be left out; then the second copies everything. After a failure the copy is of no use. */
int layercopy_first(struct layercopy *c, struct pale_err *e) MUST_CHECK;
int layercopy_second(struct layercopy *c, struct pale_err *e) MUST_CHECK;
const struct layercopy_count *layercopy_count(const struct layercopy *c);
