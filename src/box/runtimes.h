/* SPDX-License-Identifier: Apache-2.0 */
/* Other runtime folders in which keepers of this user have their sockets and claims: found by the keepers that live. */
#pragma once

#include "base/err.h"

#define RUNTIMES_PATH_MAX 128

/* Calls fn with each runtime folder that is not own, belongs to the caller (root: to anybody) and has a living keeper; stops at a negative
 * answer, which it returns. */
int runtimes_each_other(const char *own, int (*fn)(void *arg, int dir, const char *path), void *arg) MUST_CHECK;
