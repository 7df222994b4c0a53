/* SPDX-License-Identifier: Apache-2.0 */
/* From a request to an operation: which row of the table its method and path mean. */
#pragma once

#include "base/err.h"
#include "net/httphead.h"
#include "net/target.h"
#include "ops/call.h"
#include "ops/op.h"

/* The operation, or NULL; then *ret_status is 404 or 405, and allow is the text of the Allow header of the latter. */
const struct op *route_find(const struct http_text *method, const struct target *t, unsigned *ret_status, char *allow, size_t cap);
