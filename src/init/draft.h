/* SPDX-License-Identifier: Apache-2.0 */
/* Drafts: a file that gets its name when it is whole. */
#pragma once

#include "wire/message.h"

/* The builtin `write PATH MODE over|new`. */
int draft_write(const struct msg_exec *m);
