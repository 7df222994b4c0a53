/* SPDX-License-Identifier: Apache-2.0 */
/* Names in folders: making, moving and removing what they stand for. */
#pragma once

#include "wire/message.h"

/* The builtins `mkdir PATH [parents]`, `move FROM TO [new]` and `remove PATH [tree]`. */
int names_mkdir(const struct msg_exec *m);
int names_move(const struct msg_exec *m);
int names_remove(const struct msg_exec *m);

/* A rename that replaces nothing: 0, or -1 with errno. */
int names_rename_new(int from_fd, const char *from, int to_fd, const char *to);

/* A folder and those above it, as far as they are not there: 0, or -1 with errno. */
int names_make_parents(const char *path);
