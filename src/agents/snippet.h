/* SPDX-License-Identifier: Apache-2.0 */
/* The snippet for people who wire a harness by hand: its settings with the box's MCP server in them. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/* out: the text; *ret_place: where it goes. harness: its name, as `pale agents` lists it. box: an id. PALE_NOT_FOUND names those there
 * are. */
int snippet_make(const char *harness, const char *pale, const char *box, struct buf *out, const char **ret_place,
                 struct pale_err *e) MUST_CHECK;

/* What `pale mcp` must know of our environment, for who does not hand it on. */
struct words;
void snippet_env(const char *box, struct words *out);
