/* SPDX-License-Identifier: Apache-2.0 */
/* Who needs an image: the boxes whose policies name it, and the policy that every tenant's boxes must lie within. And what becomes of
 * images, in the log of what is no box's own. The store lies below boxes and knows nothing of either. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "image/store.h"

/* Before it is done: that an image is built or removed ("image.build", "image.remove"), and for whom. digest: "" where it is not known. */
int imageuse_tell(const char *event, const char *name, const char *digest, const char *caller, struct pale_err *e) MUST_CHECK;

/* Removes a name, or an image, as store_remove does, unless a box needs it; PALE_BUSY names the box. */
int imageuse_remove(const struct store *s, const char *ref, const char *caller, struct pale_err *e) MUST_CHECK;

/* An image that nobody needs. */
struct imageuse_idle {
    const char *names; /* with commas between them; "": it has none */
    const char *digest;
    uint64_t bytes;
};

/* Removes every image that nobody needs, or, if only_tells, none; told is called for each that goes. One that is in use just now stays. */
int imageuse_collect(const struct store *s, bool only_tells, const char *caller, void (*told)(void *arg, const struct imageuse_idle *i),
                     void *arg, struct pale_err *e) MUST_CHECK;
