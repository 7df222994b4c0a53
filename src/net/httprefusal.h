/* SPDX-License-Identifier: Apache-2.0 */
/* What a client reads that may not pass: an HTTP response which says who refuses, why, and what to do.
 *
 * Pure and bounded. Texts of others are made harmless here, whatever the caller did: no line of theirs becomes a header or a second
 * response. The connection ends after it. */
#pragma once

#include <stddef.h>

#define HTTPREFUSAL_BYTES_MAX 2048u

struct httprefusal {
    unsigned status;    /* 400 what cannot be read, 403 what no rule allows, 421 what belongs to another server … */
    const char *what;   /* what was refused: "GET http://example.org/" */
    const char *why;    /* the rule, or what is wrong */
    const char *remedy; /* what its reader can do; NULL if nothing */
};

/* Writes it into ret, HTTPREFUSAL_BYTES_MAX long; returns its length. */
size_t httprefusal_write(const struct httprefusal *r, char *ret);
