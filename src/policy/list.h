/* SPDX-License-Identifier: Apache-2.0 */
/* What all keys share that are a struct policy_strings: the functions their kinds are filled with. */
#pragma once

#include "policy/field.h"

size_t list_count(const struct field *f, const struct policy *p);
void list_text(const struct field *f, const struct policy *p, size_t i, struct buf *out);
void list_show(const struct field *f, const struct policy *p, size_t i, struct buf *out);
void list_done(const struct field *f, struct policy *p);
