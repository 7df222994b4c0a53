/* SPDX-License-Identifier: Apache-2.0 */
/* Patches, applied to a tree of the box. */
#pragma once

#include "wire/message.h"

/* The builtin `patch FOLDER write|check`. */
int patch_run(const struct msg_exec *m);
