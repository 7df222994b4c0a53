/* SPDX-License-Identifier: Apache-2.0 */
/* Images as the command shows them, from this host or from another. What is told of them is a stranger's text, made harmless here. */
#pragma once

#include "base/jsonread.h"
#include "cli/cli.h"

void shown_image_list(struct listing *l, const struct args *a);

/* A row of the table; facts: an object with from, bytes, files, made. */
void shown_image_row(struct listing *l, const char *name, const char *digest, const struct jsonread *facts);

/* One fact on a line of its own. */
void shown_image_member(const struct jsonread *key, const struct jsonread *value);
