/* SPDX-License-Identifier: Apache-2.0 */
/* A path of the base that shows through a layer again, though a folder above it is deleted or made anew in the layer.
 *
 * How it works: on the way down to the path, a folder that hides what lies below it is opened, and each of the base's names in it that the
 * layer had hidden so far, but for the one on the way, gets a mark of its own that hides it. What the layer shows elsewhere stays as it is.
 * It costs what the folders on the way hold. Only a layer that nobody uses yet is changed. */
#pragma once

#include "base/err.h"

/* path: relative and normal, and left out of the layer already (weld_without). Where the base has nothing there is nothing to do.
 * PALE_BAD_INPUT if something else than a folder stands in the layer on the way. */
int uncover_path(int base_fd, int layer_fd, const char *path, struct pale_err *e) MUST_CHECK;
