/* SPDX-License-Identifier: Apache-2.0 */
/* Where a request comes from, as a browser tells it. */
#pragma once

#include "base/err.h"
#include "net/httphead.h"

/* Refuses a request that a browser was lured into: over TCP the Host must be ours, with our port, and an Origin the same. */
int origin_check(unsigned port, bool local, const struct http_head *h, struct pale_err *e) MUST_CHECK;
