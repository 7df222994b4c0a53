/* SPDX-License-Identifier: Apache-2.0 */
/* A SQLite file of ours: judged before it is touched, made whole or not at all, and brought up to date step by step. */
#pragma once

#include <sqlite3.h>
#include <stdint.h>

#include "base/err.h"
#include "base/own.h"

/* What a program keeps in one file. */
struct database_kind {
    const char *what;         /* "registry": the first word of every error */
    const char *loss;         /* what is lost with the file, for the remedy: "boxes stay, tokens are made anew" */
    int32_t application_id;   /* stands in the file and says whose it is */
    int version;              /* of the schema, and how many steps there are */
    const char *const *steps; /* steps[i] leads from version i to i + 1 */
    int64_t file_max_bytes;   /* what is larger is not ours */
};

/* Opens the database at an absolute path, or makes it (0600) with its folder (0700). The file must be a regular one of ours that
 * nobody else can read or write, in a folder of ours that nobody else can write: else PALE_DENIED. One that is damaged, or of
 * another program, is PALE_CORRUPT, of a newer pale PALE_UNSUPPORTED, of an older one is migrated, each step in a transaction. What
 * is refused was only read and stays as it was, byte for byte. The caller closes with database_close. */
int database_open(const char *path, const struct database_kind *kind, sqlite3 **ret, struct pale_err *e) MUST_CHECK;

/* Its statements must be finalized. NULL is fine. */
void database_close(sqlite3 **db);
#define own_database CLEANUP(database_close) sqlite3

/* Sets the error that a result code of SQLite means, with the phrase before SQLite's own text: PALE_BUSY, PALE_LIMIT (the disk is
 * full), PALE_NO_MEMORY, PALE_CORRUPT, PALE_EXISTS (a row of that key), PALE_OS, PALE_INTERNAL. db may be NULL. */
int database_error(sqlite3 *db, int rc, struct pale_err *e, const char *fmt, ...) PRINTF_LIKE(4, 5);
