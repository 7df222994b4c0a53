/* SPDX-License-Identifier: Apache-2.0 */
/* From a request to an operation: which row of the table its method and path mean, and its values by that row. */
#pragma once

#include "base/err.h"
#include "net/httphead.h"
#include "net/target.h"
#include "ops/call.h"
#include "ops/op.h"

/* The operation, or NULL; then *ret_status is 404 or 405, and allow is the text of the Allow header of the latter. */
const struct op *route_find(const struct http_text *method, const struct target *t, unsigned *ret_status, char *allow, size_t cap);

/* Fills in the call's values from its target's query. What the operation does not know is an error. */
int route_query(struct call *c, struct pale_err *e) MUST_CHECK;

/* Fills in the call's values from a JSON body, and afterwards checks that everything required is there. n may be 0. */
int route_body(struct call *c, const char *text, size_t n, struct pale_err *e) MUST_CHECK;
