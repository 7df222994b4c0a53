/* SPDX-License-Identifier: Apache-2.0 */
/* One use of a prepared statement that is kept: values in, rows out, and at the end it is reset, whatever happened. */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/own.h"

#define STATEMENT_TEXT_MAX 255 /* bytes of a text that is bound: longer than any of ours */

struct statement {
    sqlite3_stmt *s;
    int at;   /* values bound so far, then columns read */
    int rc;   /* the first failure to bind */
    bool bad; /* a column did not have the type, or the size, that is always written */
};

struct statement statement_begin(sqlite3_stmt *s);
void statement_end(struct statement *u);
#define own_statement CLEANUP(statement_end) struct statement

/* Bind the next value. Bytes stay the caller's and outlive the use. Failure sticks until the statement runs. */
void statement_give_text(struct statement *u, const char *text);
void statement_give_int(struct statement *u, int64_t v);
void statement_give_bytes(struct statement *u, const uint8_t *p, size_t n);

/* 1 for a row, 0 for the end. PALE_BAD_INPUT if a text was longer than STATEMENT_TEXT_MAX, else see database_error. */
int statement_step(struct statement *u, struct pale_err *e) MUST_CHECK;

/* Runs one that changes rows, and says how many. */
int statement_run(struct statement *u, int64_t *ret_rows, struct pale_err *e) MUST_CHECK;

/* Read the row's next column, or set bad: a text without NUL bytes (valid until the next step), one that fits an array, a number,
 * exactly n bytes. */
const char *statement_text(struct statement *u);
void statement_short_text(struct statement *u, char *ret, size_t cap);
int64_t statement_int(struct statement *u);
void statement_bytes(struct statement *u, uint8_t *ret, size_t n);
