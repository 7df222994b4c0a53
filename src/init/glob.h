/* SPDX-License-Identifier: Apache-2.0 */
/* Names by pattern, the newest first. */
#pragma once

#include "wire/message.h"

/* The builtin `glob PATH PATTERN LIMIT plain|hidden`. */
int glob_run(const struct msg_exec *m);
