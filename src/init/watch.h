/* SPDX-License-Identifier: Apache-2.0 */
/* Watching: what happens to a file or in a folder, told as it happens. */
#pragma once

#include "wire/message.h"

/* The builtin `watch PATH [tree]`: happenings of wire/fileline.h, first "ready", until standard input ends, the thing itself is
 * removed or moved away (the last that is told, with no name), or there are more than WATCH_FOLDERS_MAX folders to watch. It needs
 * a standard input that is held open. */
int watch_run(const struct msg_exec *m);
