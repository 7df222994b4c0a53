/* SPDX-License-Identifier: Apache-2.0 */
/* Values by fields: from what a stranger sent to what an operation, or a tool, works with. */
#pragma once

#include "ops/call.h"
#include "ops/op.h"

/* Fills in the call's values from its target's query. What the operation does not know is an error. */
int values_query(struct call *c, struct pale_err *e) MUST_CHECK;

/* Fills in the call's values from a JSON body, and afterwards checks that everything required is there. n may be 0. */
int values_body(struct call *c, const char *text, size_t n, struct pale_err *e) MUST_CHECK;

/* The same from an object whose members are fields wherever they stand in a request. what names whose fields they are; values point
 * into the object. */
int values_object(const char *what, const struct op_field *fields, json_t *object, struct value *ret, struct pale_err *e) MUST_CHECK;
