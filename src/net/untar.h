/* SPDX-License-Identifier: Apache-2.0 */
/* A tar archive made a bundle as it passes: an upload becomes what the builtin `unpack` of a box reads.
 *
 * How it works: pure, a struct of fixed size, no allocation. The archive comes from a client and is hostile. The end of the bundle is
 * only told when the archive has ended as it should, so that nobody takes a part for the whole.
 *
 * Taken are ustar, pax (path, linkpath, size, mtime; other records and global headers are passed over) and GNU's long names, with
 * files, folders and symlinks; of modes the permissions, of times the whole seconds, and no owners. Anything else is an error that
 * names the entry, and so are an absolute path, "..", an empty step, a name or a depth that no bundle has, and whatever two readers
 * could understand differently.
 *
 * A bundle goes down into folders and up again. Where an entry lies elsewhere, the folders between are left and entered. One that has
 * not been announced by then has mode 0755 and keeps it: whoever receives a bundle leaves a folder that is there as it is. */
#pragma once

#include "base/bundle.h"
#include "base/bundlehead.h"
#include "base/limits.h"
#include "net/pieces.h"
#include "net/tarhead.h"
#include "net/tarpax.h"

enum untar_state {
    UNTAR_HEAD,
    UNTAR_EXTRA, /* what a pax header or a long name says */
    UNTAR_PLACE, /* on the way to the entry's folder */
    UNTAR_TARGET,
    UNTAR_DATA,
    UNTAR_PADDING, /* up to the next block */
    UNTAR_TAIL,    /* zeros after the end */
    UNTAR_CLOSE,
    UNTAR_DONE,
};

struct untar {
    struct bundle_count count; /* of what the archive held */
    enum untar_state state;
    struct pale_err failed;
    char top[BUNDLE_NAME_MAX + 1];
    uint64_t offset; /* of the header being read */
    uint64_t left;   /* of the content */
    unsigned padding, zero_blocks;
    unsigned depth; /* folders entered */
    bool begun;     /* so is the one at the top */
    bool extra;     /* something was said of an entry that has not come */
    size_t filled;  /* of block */
    uint8_t block[TAR_BLOCK];
    size_t given, pending; /* of give: how much is gone, and how much there was */
    uint8_t give[BUNDLE_HEAD_MAX];
    char here[PATH_BYTES_MAX]; /* the folder we are in, below the top */
    size_t here_len;
    char path[PATH_BYTES_MAX]; /* of the entry */
    size_t folder_len;         /* how much of it is the folder to be in */
    struct bundle_head entry;
    struct tar_head head;
    struct tarpax pax;
};

/* The tree goes under one folder. Its name is any plain one, as bundle_receive puts its own in its place. */
void untar_init(struct untar *t, const char *top);

/* Takes and gives what it can. 1: all is done, and all of the input was used. 0: go on, with more input or more room: all of the
 * input was used, or all of the room. Negative: the archive is refused, with the reason, and so is every later call. */
int untar_step(struct untar *t, struct pieces *p, struct pale_err *e) MUST_CHECK;
