/* SPDX-License-Identifier: Apache-2.0 */
/* Edits: one text of a file replaced by another. */
#pragma once

#include "wire/message.h"

/* The builtin `edit PATH once|all`. */
int edit_run(const struct msg_exec *m);
