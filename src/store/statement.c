/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how values go into a kept statement and come out of it. */
#include "store/statement.h"

#include <string.h>

#include "store/database.h"

struct statement statement_begin(sqlite3_stmt *s)
{
    return (struct statement){.s = s};
}

void statement_end(struct statement *u)
{
    sqlite3_reset(u->s);
    sqlite3_clear_bindings(u->s);
}

static void note(struct statement *u, int rc)
{
    if (u->rc == SQLITE_OK)
        u->rc = rc;
}

void statement_give_text(struct statement *u, const char *text)
{
    size_t n = strnlen(text, STATEMENT_TEXT_MAX + 1);
    u->at++;
    note(u, n > STATEMENT_TEXT_MAX ? SQLITE_TOOBIG : sqlite3_bind_text(u->s, u->at, text, (int)n, SQLITE_STATIC));
}

void statement_give_int(struct statement *u, int64_t v)
{
    note(u, sqlite3_bind_int64(u->s, ++u->at, v));
}

void statement_give_bytes(struct statement *u, const uint8_t *p, size_t n)
{
    note(u, sqlite3_bind_blob(u->s, ++u->at, p, (int)n, SQLITE_STATIC));
}

int statement_step(struct statement *u, struct pale_err *e)
{
    if (u->rc == SQLITE_TOOBIG)
        return err_set(e, PALE_BAD_INPUT, "a text of more than %d bytes cannot be there", STATEMENT_TEXT_MAX);
    int rc = u->rc == SQLITE_OK ? sqlite3_step(u->s) : u->rc;
    u->at = 0;
    if (rc == SQLITE_ROW || rc == SQLITE_DONE)
        return rc == SQLITE_ROW;
    sqlite3 *db = sqlite3_db_handle(u->s);
    const char *file = sqlite3_db_filename(db, "main");
    return database_error(db, rc, e, "%s", file ? file : "database");
}

int statement_run(struct statement *u, int64_t *ret_rows, struct pale_err *e)
{
    int r = statement_step(u, e);
    if (r < 0)
        return r;
    *ret_rows = sqlite3_changes64(sqlite3_db_handle(u->s));
    return 0;
}

const char *statement_text(struct statement *u)
{
    int at = u->at++;
    const char *s = sqlite3_column_type(u->s, at) == SQLITE_TEXT ? (const char *)sqlite3_column_text(u->s, at) : NULL;
    if (s && strlen(s) == (size_t)sqlite3_column_bytes(u->s, at))
        return s;
    u->bad = true;
    return "";
}

void statement_short_text(struct statement *u, char *ret, size_t cap)
{
    const char *s = statement_text(u);
    size_t n = strlen(s);
    if (n < cap)
        memcpy(ret, s, n + 1);
    else
        u->bad = true;
}

int64_t statement_int(struct statement *u)
{
    int at = u->at++;
    if (sqlite3_column_type(u->s, at) != SQLITE_INTEGER)
        u->bad = true;
    return sqlite3_column_int64(u->s, at);
}

void statement_bytes(struct statement *u, uint8_t *ret, size_t n)
{
    int at = u->at++;
    const void *p = sqlite3_column_type(u->s, at) == SQLITE_BLOB ? sqlite3_column_blob(u->s, at) : NULL;
    if (p && (size_t)sqlite3_column_bytes(u->s, at) == n)
        memcpy(ret, p, n);
    else
        u->bad = true;
}
