/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a user's own settings of a harness: how one logs in, which provider and model. Nothing that runs is taken over. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/jsonread.h"

#define USERSETTINGS_MAX (1u << 20)

/* The value at a path of keys (ended by NULL) in a JSON file below HOME, which text then holds; false if there is none. */
bool usersettings_get(const char *file, const char *const *path, struct buf *text, struct jsonread *ret);

/* The same for a text; "" if there is none, or what stands there is not a plain word. */
void usersettings_text(const char *file, const char *const *path, char *ret, size_t cap);
