/* SPDX-License-Identifier: Apache-2.0 */
/* Reading of the short texts in which pale-init answers: numbers in their only form, letters, texts that a NUL ends.
 *
 * How it works: whoever wrote the bytes is hostile. Each function reads one thing at the cursor's place and moves on, or says why not:
 * 1 (it is there), 0 (more bytes are needed), -1 (nothing of ours). None reads beyond n, and what a text points at are the bytes
 * themselves. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct scan {
    const char *p;
    size_t n, at;
};

/* One of these letters; a space. */
int scan_letter(struct scan *c, const char *letters, char *ret) MUST_CHECK;
int scan_space(struct scan *c) MUST_CHECK;

/* Digits up to the next space, which is taken too. No zero stands before another digit. */
int scan_number(struct scan *c, unsigned base, uint64_t max, uint64_t *ret) MUST_CHECK;
int scan_signed(struct scan *c, int64_t *ret) MUST_CHECK;

/* Text shorter than cap, and the NUL after it. */
int scan_text(struct scan *c, size_t cap, const char **ret) MUST_CHECK;

/* So many bytes of any kind. */
int scan_bytes(struct scan *c, size_t n, const char **ret) MUST_CHECK;

/* One name of a folder's entry: no slash, not "." or "..". */
bool scan_is_plain_name(const char *s);

/* Names with one slash between them, and nothing that leads up or stays; "" is one. */
bool scan_is_relative(const char *s);
