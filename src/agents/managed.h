/* SPDX-License-Identifier: Apache-2.0 */
/* Settings that a site's administrator has put above every user's: which of them defeat a wiring, and why. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/sha256.h"

#define MANAGED_BYTES_MAX (1u << 20)
#define MANAGED_FILES_MAX 64

/* A key of such a file (JSON, at the top) that matters. */
struct managed_key {
    const char *name;
    bool defeats; /* else it is only told of */
    const char *text;
};

struct managed_file {
    const char *path;              /* one that ends in '/' is a folder of files *.json */
    const struct managed_key *key; /* NULL: that there is such a file is what matters */
    bool defeats;                  /* … and whether it does */
    const char *text;
};

/* Calls tell for everything found, worst or not; *ret_defeated says whether one defeats the wiring. The digest changes when the files do.
 * files is ended by a row without path. */
int managed_look(const struct managed_file *files, void (*tell)(void *arg, bool defeats, const char *path, const char *text), void *arg,
                 bool *ret_defeated, struct sha256 *digest, struct pale_err *e) MUST_CHECK;
