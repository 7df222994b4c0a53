/* SPDX-License-Identifier: Apache-2.0 */
/* Bearer tokens: 256 random bits as text, of which only the SHA-256 is kept. */
#pragma once

#include "ops/call.h"
#include "store/registry.h"

#define TOKEN_PREFIX "pale_"
#define TOKEN_TEXT_LEN (sizeof(TOKEN_PREFIX) - 1 + 64)

/* Who a token stands for. PALE_DENIED, in the same words, if it is unknown, expired or revoked; of one that was good once *ret then has
 * the handle. */
int token_caller(struct registry *r, const char *text, size_t n, struct caller *ret, struct pale_err *e) MUST_CHECK;
