/* SPDX-License-Identifier: Apache-2.0 */
/* Marks of the overlay put into a tree that was unpacked in a box: what was deleted, and folders that hide what lies below. A box can make
 * neither, and writes down which there are to be (net/cargo.h). */
#pragma once

#include "base/err.h"

/* Reads the list, which is as hostile as the tree, and makes what it says, in those parts of the tree alone that lie on something. A folder
 * keeps mode and time. Nobody else changes the tree meanwhile. PALE_CORRUPT if the list is none. */
int markup_apply(int root_fd, int list_fd, struct pale_err *e) MUST_CHECK;
