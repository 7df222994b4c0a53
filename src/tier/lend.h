/* SPDX-License-Identifier: Apache-2.0 */
/* What the host lends a box: a folder or plain file, opened without following a symlink and cloned as a detached mount. */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "tier/wall.h"

/* A detached copy of the mount at path, read-only unless writable, with everything mounted below it. idmap_fd >= 0: shown with the
 * owners of that user namespace. *ret_dir (may be NULL): it is a folder. Returns a descriptor or a negative code. */
int lend_clone(const struct wall_plan *plan, const char *path, bool writable, int idmap_fd, bool *ret_dir, struct pale_err *e) MUST_CHECK;
