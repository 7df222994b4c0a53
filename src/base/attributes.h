/* SPDX-License-Identifier: Apache-2.0 */
/* Extended attributes that are a user's own ("user.…", but not those by which an overlay is steered), as bytes: for each, sorted by name,
 * the name with a zero, the length of the value in eight bytes, the value. One set of attributes makes one text. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define ATTRIBUTE_LENGTH_BYTES 8u

/* Is it carried along? */
bool attributes_is_own(const char *name);

/* Those of what a descriptor, which may be O_PATH, stands for are added to out. PALE_UNSUPPORTED if they are more than
 * ATTRIBUTES_BYTES_MAX. */
int attributes_read(int fd, struct buf *out, struct pale_err *e) MUST_CHECK;

/* Sets them. fd is open for reading or writing. PALE_BAD_INPUT if it is no such text. */
int attributes_set(int fd, const uint8_t *p, size_t n, struct pale_err *e) MUST_CHECK;

/* The next of a text: true with where name and value are; *at is 0 at first. */
bool attributes_next(const uint8_t *p, size_t n, size_t *at, const char **ret_name, const uint8_t **ret_value, size_t *ret_len);
