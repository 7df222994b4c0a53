/* SPDX-License-Identifier: Apache-2.0 */
/* Refused calls in the daemon's log: a line for each, up to some in a while; of the rest the number. */
#pragma once

#include "base/loop.h"

void refusal_init(struct loop *loop);

/* token: its handle, or ""; the reason may hold foreign text. */
void refusal_tell(const char *token, const char *operation, const char *reason);
