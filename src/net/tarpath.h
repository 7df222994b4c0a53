/* SPDX-License-Identifier: Apache-2.0 */
/* The path of an archive's entry, checked step by step. Pure. */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/limits.h"

/* The path below the archive's top, without "./" before and '/' after it; empty for the top itself, which only a folder can be. An
 * absolute path, "..", an empty step, a name or a depth that no bundle has are errors. p is shorter than PATH_BYTES_MAX. */
int tarpath_clean(const char *p, bool is_folder, char ret[PATH_BYTES_MAX], struct pale_err *e) MUST_CHECK;
