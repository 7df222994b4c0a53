/* SPDX-License-Identifier: Apache-2.0 */
/* The imprint of a tree: a canonical listing, one line per entry, whose SHA-256 is the tree's digest.
 *
 *     d 0755<TAB>usr/bin
 *     f 0755 31256 <sha-256><TAB>usr/bin/env
 *     l<TAB>bin<TAB>usr/bin
 *
 * The top is "."; names are sorted as bytes, a folder stands before what is in it. In names every byte but printable ASCII without the
 * backslash is \xHH. Owners and times are not part of it. Before the lines of the tree may stand lines of the caller, each beginning
 * with "#".
 *
 * How it works: the tree may have been written by a box and is hostile. It is walked from its descriptor with a stack of open folders,
 * without following anything; a file is only opened once it is known to be one. With mend it becomes what an image may be: whatever is
 * no file, folder or symlink is removed, set-bits and extended attributes go, and its owner may read everything and remove it. Nobody
 * else changes the tree meanwhile. */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/sha256.h"
#include "image/left.h"

#define IMPRINT_DEPTH_MAX 160 /* folders in one another; archives have at most 128 */

struct imprint {
    /* What is wanted. */
    int root_fd;
    bool mend;
    int inventory_fd;                  /* -1, or where the inventory goes … */
    int expected_fd;                   /* … and -1, or an inventory that must be the same: PALE_CORRUPT names the first difference */
    const char *preface;               /* lines before the first, each with its newline; "" for none */
    const volatile sig_atomic_t *stop; /* NULL, or set when somebody wants it to end */
    void (*progress)(void *arg, uint64_t entries, uint64_t bytes);
    void *progress_arg;

    /* What came of it. */
    char digest[SHA256_HEX];
    uint64_t files, folders, links, bytes;
    struct left left;
};

void imprint_init(struct imprint *i, int root_fd);
int imprint_take(struct imprint *i, struct pale_err *e) MUST_CHECK;
