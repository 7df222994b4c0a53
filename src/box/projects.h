/* SPDX-License-Identifier: Apache-2.0 */
/* The projects that have boxes, as the user's state folder knows them. */
#pragma once

#include "base/err.h"

/* Calls fn with the path of each .pale that has the folder of a box of this user, once each; whether it is still there fn finds out. Stops
 * at a negative answer, which it returns. */
int projects_each(int (*fn)(void *arg, const char *pale, struct pale_err *e), void *arg, struct pale_err *e) MUST_CHECK;
