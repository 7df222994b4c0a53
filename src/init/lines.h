/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of a file, as a reader wants them: some thousands at a time, with their numbers. */
#pragma once

#include "wire/message.h"

/* The builtin `lines PATH from|tail N COUNT BYTES`. */
int lines_run(const struct msg_exec *m);
