/* SPDX-License-Identifier: Apache-2.0 */
/* The manifest of an image: where it came from, what is in it, what was left out. Written once, read by people and by inspect. */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "image/imprint.h"
#include "image/left.h"
#include "image/ocijson.h"

struct manifest {
    const char *from, *suite, *variant; /* NULL: not said */
    const char *include;                /* package names with commas between them; NULL */
    const char *file;          /* the last name of the source's path; NULL. Addresses are not written down: they may hold a login */
    const char *source_digest; /* of the source's bytes or its OCI manifest, in hex; NULL */
    uint64_t source_bytes;
    const struct ocijson_config *config; /* NULL: it has none */
    const char *build;                   /* which pale */
};

/* As JSON, into out. What the imprint found is part of it. */
int manifest_write(const struct manifest *m, const struct imprint *i, struct buf *out, struct pale_err *e) MUST_CHECK;

/* The lines about a configuration that go before an inventory: two images with one tree and other variables are two. */
int manifest_preface(const struct ocijson_config *c, struct buf *out, struct pale_err *e) MUST_CHECK;
