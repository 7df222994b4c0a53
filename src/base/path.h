/* SPDX-License-Identifier: Apache-2.0 */
/* Paths and names as text. Nothing here touches the file system. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Absolute, no empty, "." or ".." component, no trailing slash (but "/" itself), no control byte, shorter than
 * PATH_BYTES_MAX. */
bool path_is_normal(const char *p);

/* Is p equal to base or below it, at a component boundary? Both normal. */
bool path_is_within(const char *p, const char *base);

/* A box name: [a-z0-9][a-z0-9-]{0,62}, so that it is one path component and one host name label. */
bool path_is_box_name(const char *s);

/* Joins with one slash; false if it does not fit. */
bool path_join(char *ret, size_t cap, const char *dir, const char *name);
