/* SPDX-License-Identifier: Apache-2.0 */
/* Reading JSON without allocation: spans of a text, member by member.
 *
 * Strict as RFC 8259, with a bounded depth. A value is checked whole before anybody sees a part of it; what it points at is the text it
 * was read from. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JSONREAD_DEPTH 32

enum jsonread_kind { JSONREAD_NULL, JSONREAD_FALSE, JSONREAD_TRUE, JSONREAD_NUMBER, JSONREAD_TEXT, JSONREAD_LIST, JSONREAD_OBJECT };

struct jsonread {
    enum jsonread_kind kind;
    const char *at; /* its first byte; of a text the one after the quote */
    size_t len;     /* of a text without its quotes, still escaped */
};

/* One value and nothing after it but blanks. */
bool jsonread_parse(const char *p, size_t n, struct jsonread *ret);

/* The members of an object, or items of a list, in turn: *pos is 0 at first. key may be NULL, and is empty for an item. */
bool jsonread_next(const struct jsonread *v, size_t *pos, struct jsonread *key, struct jsonread *ret);

/* A member by its name; the first if there are several. */
bool jsonread_get(const struct jsonread *v, const char *key, struct jsonread *ret);

/* A text without its escapes, with a NUL, cut where cap ends; NULs in it become U+FFFD. "" for what is no text. Returns ret. */
const char *jsonread_text(const struct jsonread *v, char *ret, size_t cap);

/* A whole number, not negative. */
bool jsonread_u64(const struct jsonread *v, uint64_t *ret);
