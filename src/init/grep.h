/* SPDX-License-Identifier: Apache-2.0 */
/* Searches through the files of a tree. */
#pragma once

#include "wire/message.h"

/* The builtin `grep PATH PATTERN GLOB FLAGS BEFORE AFTER content|files|count LIMIT`. GLOB may be ""; FLAGS are letters: i ignores case,
 * f takes the pattern for a text, h looks into hidden folders; - alone is none. */
int grep_run(const struct msg_exec *m);
