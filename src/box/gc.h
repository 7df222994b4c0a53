/* SPDX-License-Identifier: Apache-2.0 */
/* Collecting what nobody needs any more: layers, what dead processes have left, and, if asked for, images. Blocks. */
#pragma once

#include "base/err.h"
#include "base/json.h"
#include "box/imageuse.h"
#include "box/place.h"

struct gc_result {
    unsigned boxes;       /* looked at */
    unsigned layers;      /* that neither a snapshot nor a box stands on */
    unsigned orphans;     /* boxes whose folder somebody had removed, with what was left of them, and boxes that were half made */
    unsigned files;       /* that somebody was writing when he died */
    unsigned staging;     /* folders in which somebody was building an image when he died */
    unsigned logs;        /* of boxes that were removed long ago (box/kept_log.h) */
    unsigned quarantines; /* of one-shot boxes, older than LITTER_QUARANTINE_DAYS */
};

struct gc_order {
    bool only_tells; /* nothing is removed: the result is what would be */
    bool images;     /* also those that no box, and no policy of all tenants, names; told is called for each */
    void (*told)(void *arg, const struct imageuse_idle *i);
    void *arg;
    const char *caller;
};

/* The layers that boxes beside p share, p there still or not: those that none of them stands on. */
int gc_shared(const struct place *p, struct pale_err *e) MUST_CHECK;

/* Every box of the user, the layers that several share, and what is left of boxes whose folder is gone. */
int gc_all(const struct gc_order *o, struct gc_result *ret, struct pale_err *e) MUST_CHECK;

/* The result as members of an object; an image as an object of a list. */
void gc_json(const struct gc_result *g, struct json *j);
void gc_image_json(const struct imageuse_idle *i, struct json *j);
