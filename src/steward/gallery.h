/* SPDX-License-Identifier: Apache-2.0 */
/* Deeds on images: listed, shown, verified, removed. What they tell goes to paled in parts, as JSON. */
#pragma once

#include "base/err.h"

/* only: the one image that the caller may see, by a reference, "" for none; NULL: he sees them all, and where they are. */
int gallery_list(const char *only, int fd, struct pale_err *e) MUST_CHECK;
int gallery_show(const char *ref, const char *only, int fd, struct pale_err *e) MUST_CHECK;

/* Reads all of it again; ends if nobody waits for the answer any more. */
int gallery_verify(const char *ref, int fd, struct pale_err *e) MUST_CHECK;

int gallery_remove(const char *ref, const char *caller, struct pale_err *e) MUST_CHECK;
