/* SPDX-License-Identifier: Apache-2.0 */
/* Setting, prefixing and naming errors. Setting an error is the return statement: `return err_set(e, …)`. */
#pragma once

#include "pale/err.h"

#define MUST_CHECK __attribute__((warn_unused_result))
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))

/* Fills e (which may be NULL) and returns -code. */
int err_set(struct pale_err *e, enum pale_code code, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* The same for a failed system call: takes errno, appends its text, and picks the code that errno means. */
int err_os(struct pale_err *e, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Puts one phrase before the text of an error already set ("create box x: ") and returns its negative code. */
int err_prefix(struct pale_err *e, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Out of memory, said the same way everywhere. */
int err_nomem(struct pale_err *e);

/* The closed list of names ("not-found") used in JSON, and the exit status of a program that fails so. */
const char *err_name(enum pale_code code);
int err_exit_status(enum pale_code code);
unsigned err_http_status(enum pale_code code);
enum pale_code err_code_of(const char *name); /* PALE_INTERNAL if there is none of that name */
