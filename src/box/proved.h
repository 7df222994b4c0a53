/* SPDX-License-Identifier: Apache-2.0 */
/* What has been proved in full since the host was booted: one file per (boot, kernel, tier, policy, build), so that the next box of
 * the same kind gets the short probe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/limits.h"
#include "base/sha256.h"
#include "box/sealer.h"

struct proved {
    char dir[PATH_BYTES_MAX]; /* in the user's state folder, made where missing */
    char boot[40];            /* the kernel's name for this boot */
    char name[120];           /* of the file */
    char digest[SHA256_HEX];  /* of the full receipt; "" while there is none */
};

/* What makes two boxes the same kind besides the host: everything that decides how a wall is built. */
struct proved_kind {
    const char *kernel, *tier, *policy_digest, *build;
    const char *programs[2]; /* files whose change makes a new build */
    unsigned ids_kind, limits_kind;
};

/* Looks whether this kind was proved since boot. */
int proved_find(const struct proved_kind *k, struct proved *ret, struct pale_err *e) MUST_CHECK;

/* Remembers a full receipt with its key and signature, and forgets those of other boots. */
int proved_store(struct proved *p, const char *receipt, size_t n, const struct sealed *sealed, struct pale_err *e) MUST_CHECK;
