/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of texts in a policy: sorted and without doubles, so that two policies that mean the same are the same bytes. */
#pragma once

#include "policy/policy.h"

/* Copies value into its place; a value that is there already is left as it is. PALE_LIMIT past POLICY_LIST_MAX. */
int strlist_add(struct policy_strings *l, const char *value, struct pale_err *e) MUST_CHECK;

/* Takes the item at this index out. */
void strlist_drop(struct policy_strings *l, size_t at);

/* The index of value, or l->count. */
size_t strlist_find(const struct policy_strings *l, const char *value);

void strlist_done(struct policy_strings *l);
