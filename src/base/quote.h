/* SPDX-License-Identifier: Apache-2.0 */
/* Foreign text made harmless: the one function through which bytes from a box, a file name or a peer reach a terminal, a
 * table or an error text. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* Appends p as printable UTF-8. Control bytes, escapes, bidirectional and other invisible marks and invalid UTF-8 become
 * \n, \t, \x1b or \u{202e}; a backslash is doubled. What goes past `most` shown bytes is cut and marked with "…". */
void quote_text(struct buf *b, const void *p, size_t n, size_t most);

/* The same for text of ours that may hold quoted pieces already: backslashes stay single. */
void quote_again(struct buf *b, const void *p, size_t n, size_t most);

/* quote_text into a fixed array, for error texts. Returns ret. */
const char *quote_into(char *ret, size_t cap, const void *p, size_t n);

/* How many bytes at p stand for themselves everywhere: printable ASCII but for quotes and backslashes. */
size_t quote_plain(const void *p, size_t n);

/* Does this code point change how its neighbours are shown, or show nothing? Control characters do. */
bool quote_is_deceptive(unsigned point);

/* Length of the valid UTF-8 sequence at p (1-4), or 0; *ret_point is the code point. */
size_t quote_utf8(const unsigned char *p, size_t n, unsigned *ret_point);
