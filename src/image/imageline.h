/* SPDX-License-Identifier: Apache-2.0 */
/* An image as it is told: a line of a listing, or all about it. */
#pragma once

#include <stdbool.h>

#include "base/json.h"
#include "image/store.h"

/* Objects of a list. shows_root: with the path of its root on this host, which is for who may look there. */
void imageline_json(const struct image *i, bool shows_root, struct json *j);

/* The same with everything its manifest has, much of which strangers wrote. */
void imageline_all_json(const struct image *i, bool shows_root, struct json *j);
