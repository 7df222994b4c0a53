/* SPDX-License-Identifier: Apache-2.0 */
/* Landlock: the second lock on files. Everything may be read where the mounts allow it; writing, creating and removing is
 * allowed beneath the named folders alone. With scoped, abstract sockets and signals stay within the domain where the kernel can do it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* The kernel's Landlock ABI, 0 if there is none, -1 with errno if that could not be found out. */
int landlock_abi(void);

/* How many more domains a child of ours could enter, which tells how many there are: the kernel has a fixed number. -1 if there is no
 * telling. The child shares our memory and is gone when this returns. */
int landlock_domains_left(void);

/* Restricts the calling process and all it will start. paths are opened here, in the caller's view; a path that is not there
 * is skipped. Needs NO_NEW_PRIVS or CAP_SYS_ADMIN in this user namespace. */
int landlock_restrict_writes(const char *const *paths, size_t count, bool scoped, struct pale_err *e) MUST_CHECK;
