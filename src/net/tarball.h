/* SPDX-License-Identifier: Apache-2.0 */
/* A bundle made a tar archive as it passes: what the builtin `pack` of a box writes becomes a download.
 *
 * How it works: pure, a struct of fixed size, no allocation. The bundle comes out of a box and is hostile: it is checked as
 * bundle_receive checks it, and the archive's end is only told when the bundle has ended as it should.
 *
 * The archive is ustar, with a pax header where a path, a target, a size or a time does not fit. Everything belongs to 0, without names
 * of users; modes are permissions alone. Whether one name comes twice is not known here: a box that lies can say that a name is a
 * symlink first and a folder then, which whoever unpacks an archive must expect of any. With inner_links_only such a link leads nowhere
 * but into the tree. */
#pragma once

#include "base/bundle.h"
#include "base/bundlehead.h"
#include "base/limits.h"
#include "net/pieces.h"
#include "net/tarentry.h"

enum tarball_state { TARBALL_HEAD, TARBALL_NAME, TARBALL_TARGET, TARBALL_DATA, TARBALL_TAIL, TARBALL_DONE };

struct tarball {
    struct bundle_count count; /* of what the archive holds; skipped: links left out */
    enum tarball_state state;
    struct pale_err failed;
    bool inner_links_only;
    char top[BUNDLE_NAME_MAX + 1];
    bool begun; /* an entry has come */
    unsigned depth;
    uint64_t left;                /* of a file */
    size_t filled;                /* of part */
    uint8_t part[PATH_BYTES_MAX]; /* a head, a name or a target that is not whole yet */
    char path[PATH_BYTES_MAX];    /* the folder we are in, or a leaf in it */
    size_t path_len;
    struct bundle_head entry;
    size_t given, pending;            /* of give: how much is gone, and how much there was */
    unsigned zeros;                   /* to be given after that */
    uint8_t give[TARENTRY_BYTES_MAX]; /* the headers of one entry */
};

/* In the place of the bundle's own name comes top: one plain name, or "." for such names as `tar -c .` gives. With "." a bundle that is
 * no folder keeps its name. With inner_links_only, symlinks that are absolute or climb out of the bundle are left out and counted. */
int tarball_init(struct tarball *t, const char *top, bool inner_links_only, struct pale_err *e) MUST_CHECK;

/* Takes and gives what it can. 1: all is done, and all of the input was used. 0: go on, with more input or more room: all of the
 * input was used, or all of the room. Negative: the bundle is refused, with the reason, and so is every later call. */
int tarball_step(struct tarball *t, struct pieces *p, struct pale_err *e) MUST_CHECK;
