/* SPDX-License-Identifier: Apache-2.0 */
/* The image that a policy names, in the user's store. */
#pragma once

#include <stddef.h>

#include "base/err.h"
#include "image/store.h"

/* The user's store; made if it is not there. */
int imageref_store(struct store *ret, struct pale_err *e) MUST_CHECK;

/* Finds and holds it; ret is released by the caller. */
int imageref_find(const char *ref, struct image *ret, struct pale_err *e) MUST_CHECK;

/* The real path of its root alone, for who only looks. */
int imageref_root(const char *ref, char *ret, size_t cap, struct pale_err *e) MUST_CHECK;
