/* SPDX-License-Identifier: Apache-2.0 */
/* The work on closed layers that reads all they hold: a digest, and several as one. Boxes wrote them, so it is done by a process in
 * seclusion that has these layers and nothing else, and what it says is taken for what a box might have written. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/sha256.h"
#include "box/place.h"
#include "box/stack.h"

struct layerwork_finding {
    char digest[SHA256_HEX];
    bool poisoned; /* it holds what no box can make */
};

/* The digest of a layer, which is on the disk then. */
int layerwork_digest(const struct place *p, const char *id, struct layerwork_finding *ret, struct pale_err *e) MUST_CHECK;

struct layerwork_part {
    char id[LAYER_ID_LEN + 1];
    bool anew; /* the project begins again with it, or within it */
};

/* Welds layers, the lowest first, into a new one that has a place for each part; all of it is on the disk then. None of them can be changed
 * by it. */
int layerwork_weld(const struct place *p, const struct layerwork_part *parts, size_t count, const char *made,
                   struct pale_err *e) MUST_CHECK;
