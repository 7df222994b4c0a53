/* SPDX-License-Identifier: Apache-2.0 */
/* A connection to a daemon behind TLS: pale-dial makes it, proves who is there and ends the TLS, so that we link none of it. */
#pragma once

#include <stdint.h>

#include "base/err.h"

/* A socket whose bytes are those of the connection. It ends with ours. until_ms: monotonic. */
int dialling_open(const char *name, uint16_t port, int64_t until_ms, int *ret_fd, struct pale_err *e) MUST_CHECK;
