/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the registry's schema, its statements, and the rules of its rows, which hold for what is written and for what is read. */
#include "store/registry.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "base/path.h"
#include "base/quote.h"
#include "store/database.h"
#include "store/statement.h"

#define APPLICATION_ID 0x50414c52            /* "PALR" */
#define TIME_MAX_MS INT64_C(253402300799999) /* the end of the year 9999 */
#define DAY_MS INT64_C(86400000)

#define STR_(x) #x
#define STR(x) STR_(x)

/* Never changed once released: a step is what an old file still needs. Rows lie in the tree of their key, so what is found by key
 * cannot be another row, however damaged an index is. */
static const char *const steps[] = {
    "CREATE TABLE boxes (tenant TEXT NOT NULL, name TEXT NOT NULL, key TEXT NOT NULL, asked BLOB NOT NULL, made_ms INTEGER NOT NULL,"
    " expires_ms INTEGER NOT NULL, idle_ms INTEGER NOT NULL, PRIMARY KEY (tenant, name)) STRICT, WITHOUT ROWID;"
    "CREATE UNIQUE INDEX boxes_key ON boxes (tenant, key) WHERE key <> '';"
    "CREATE TABLE tokens (hash BLOB NOT NULL PRIMARY KEY, id TEXT NOT NULL UNIQUE, name TEXT NOT NULL, scope INTEGER NOT NULL,"
    " tenant TEXT NOT NULL, box TEXT NOT NULL, rights INTEGER NOT NULL, made_ms INTEGER NOT NULL, expires_ms INTEGER NOT NULL,"
    " revoked_ms INTEGER NOT NULL) STRICT, WITHOUT ROWID;",

    "ALTER TABLE tokens ADD COLUMN last_used_ms INTEGER NOT NULL DEFAULT 0;",

    /* While a box is renamed two rows have its key. */
    "ALTER TABLE boxes ADD COLUMN born INTEGER NOT NULL DEFAULT 0;"
    "DROP INDEX boxes_key; CREATE INDEX boxes_key ON boxes (tenant, key) WHERE key <> '';"
    "ALTER TABLE tokens ADD COLUMN born INTEGER NOT NULL DEFAULT 0;",
};

static const struct database_kind kind = {
    .what = "registry",
    .loss = "boxes stay; tokens and terms of boxes are made anew",
    .application_id = APPLICATION_ID,
    .version = sizeof(steps) / sizeof(steps[0]),
    .steps = steps,
    .file_max_bytes = REGISTRY_FILE_MAX,
};

enum query {
    BOX_PUT,
    BOX_DROP,
    BOX_FIND,
    BOX_FIND_KEY,
    BOX_NEXT,
    TOKEN_ADD,
    TOKEN_FIND_HASH,
    TOKEN_FIND,
    TOKEN_NEXT,
    TOKEN_REVOKE,
    TOKEN_TOUCH,
    TOKEN_PURGE,
    QUERY_COUNT,
};

#define BOX_COLUMNS "tenant, name, key, asked, made_ms, expires_ms, idle_ms, born"
#define TOKEN_COLUMNS "id, name, scope, tenant, box, rights, made_ms, expires_ms, revoked_ms, last_used_ms, born"

static const char *const queries[] = {
    [BOX_PUT] = "INSERT INTO boxes (" BOX_COLUMNS ") SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8"
                " WHERE (SELECT count(*) FROM boxes) < " STR(
                    REGISTRY_BOXES_MAX) " OR EXISTS (SELECT 1 FROM boxes WHERE tenant = ?1 AND name = ?2)"
                                        " ON CONFLICT (tenant, name) DO UPDATE SET key = excluded.key, "
                                        "asked = excluded.asked, made_ms = excluded.made_ms,"
                                        " expires_ms = excluded.expires_ms, idle_ms = excluded.idle_ms, born = excluded.born",
    [BOX_DROP] = "DELETE FROM boxes WHERE tenant = ?1 AND name = ?2",
    [BOX_FIND] = "SELECT " BOX_COLUMNS " FROM boxes WHERE tenant = ?1 AND name = ?2",
    [BOX_FIND_KEY] = "SELECT " BOX_COLUMNS " FROM boxes WHERE tenant = ?1 AND key = ?2 AND key <> ''",
    [BOX_NEXT] = "SELECT " BOX_COLUMNS " FROM boxes WHERE (tenant, name) > (?1, ?2) ORDER BY tenant, name LIMIT 1",
    [TOKEN_ADD] = "INSERT INTO tokens (hash, " TOKEN_COLUMNS ") SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12"
                  " WHERE (SELECT count(*) FROM tokens) < " STR(REGISTRY_TOKENS_MAX),
    [TOKEN_FIND_HASH] = "SELECT " TOKEN_COLUMNS " FROM tokens WHERE hash = ?1",
    [TOKEN_FIND] = "SELECT " TOKEN_COLUMNS " FROM tokens WHERE id = ?1",
    [TOKEN_NEXT] = "SELECT " TOKEN_COLUMNS " FROM tokens WHERE id > ?1 ORDER BY id LIMIT 1",
    [TOKEN_REVOKE] = "UPDATE tokens SET revoked_ms = CASE revoked_ms WHEN 0 THEN ?2 ELSE revoked_ms END WHERE id = ?1",
    [TOKEN_TOUCH] = "UPDATE tokens SET last_used_ms = max(last_used_ms, ?2) WHERE id = ?1",
    [TOKEN_PURGE] = "DELETE FROM tokens WHERE (expires_ms <> 0 AND expires_ms < ?1) OR (revoked_ms <> 0 AND revoked_ms < ?1)",
};
static_assert(sizeof(queries) / sizeof(queries[0]) == QUERY_COUNT, "a text for every query");

struct registry {
    sqlite3 *db;
    sqlite3_stmt *kept[QUERY_COUNT];
};

void registry_close(struct registry *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < QUERY_COUNT; i++)
        sqlite3_finalize(r->kept[i]);
    database_close(&r->db);
    free(r);
}

int registry_open(const char *path, struct registry **ret, struct pale_err *e)
{
    struct registry *r = calloc(1, sizeof(*r));
    if (!r)
        return err_nomem(e);
    int code = database_open(path, &kind, &r->db, e);
    for (size_t i = 0; i < QUERY_COUNT && code == 0; i++) {
        int rc = sqlite3_prepare_v3(r->db, queries[i], -1, SQLITE_PREPARE_PERSISTENT, &r->kept[i], NULL);
        if (rc != SQLITE_OK)
            code = database_error(r->db, rc, e, "registry %s: prepare to use its tables", path);
        if (code == -PALE_CORRUPT)
            code = err_set(e, PALE_CORRUPT, "registry %s: its tables are not ours; move it away to begin with a new one (%s)", path,
                           kind.loss);
    }
    if (code < 0) {
        registry_close(r);
        return code;
    }
    *ret = r;
    return 0;
}

static int damaged(sqlite3 *db, const char *what, const char *why, struct pale_err *e)
{
    return err_set(e, PALE_CORRUPT, "registry %s: the row of a %s is damaged: %s; move it away to begin with a new one (%s)",
                   sqlite3_db_filename(db, "main"), what, why, kind.loss);
}

/* A row that was read, by its types and by the rules. A text may also be missing because there was no memory for it. */
static int verdict(const struct statement *u, const char *what, const char *fault, struct pale_err *e)
{
    sqlite3 *db = sqlite3_db_handle(u->s);
    if (u->bad && sqlite3_errcode(db) == SQLITE_NOMEM)
        return err_nomem(e);
    if (u->bad)
        return damaged(db, what, "a value is not of its type", e);
    return fault ? damaged(db, what, fault, e) : 0;
}

static const char *append(char **at, const char *s)
{
    size_t n = strlen(s) + 1;
    char *to = memcpy(*at, s, n);
    *at += n;
    return to;
}

/* --- rules --- */

static bool is_time(int64_t ms)
{
    return ms >= 0 && ms <= TIME_MAX_MS;
}

static bool is_tenant(const char *s)
{
    static_assert(TENANT_NAME_MAX == BOX_NAME_MAX, "named as a box is");
    return s[0] == 0 || path_is_box_name(s);
}

static bool is_hex(const char *s, size_t len)
{
    return strnlen(s, len + 1) == len && strspn(s, "0123456789abcdef") == len;
}

static bool is_plain(const char *s, size_t max)
{
    size_t len = strnlen(s, max + 1), n;
    unsigned point = 0;
    if (len > max)
        return false;
    for (size_t i = 0; i < len; i += n)
        if ((n = quote_utf8((const unsigned char *)s + i, len - i, &point)) == 0 || quote_is_deceptive(point))
            return false;
    return true;
}

/* What is wrong with it, or NULL. */
static const char *box_fault(const struct registry_box *b)
{
    if (!is_tenant(b->tenant))
        return "the tenant is no name";
    if (!path_is_box_name(b->name))
        return "the name is none of a box";
    if (!is_plain(b->key, REQUEST_KEY_MAX))
        return "the key has more than " STR(REQUEST_KEY_MAX) " bytes or some that cannot be shown";
    if (!is_time(b->made_unix_ms) || !is_time(b->expires_unix_ms) || !is_time(b->idle_ms))
        return "a time is out of bounds";
    return NULL;
}

static const char *scope_fault(const struct registry_token *t)
{
    switch (t->scope) {
    case REGISTRY_SCOPE_BOX:
        return is_hex(t->box, BOX_ID_LEN) ? NULL : "a box's token without the id of a box";
    case REGISTRY_SCOPE_TENANT:
        return t->tenant[0] && !t->box[0] ? NULL : "a tenant's token without a tenant, or with a box";
    case REGISTRY_SCOPE_OPERATOR:
        return !t->tenant[0] && !t->box[0] ? NULL : "an operator's token with a tenant or a box";
    }
    return "there is no such scope";
}

static const char *token_fault(const struct registry_token *t)
{
    if (!is_hex(t->id, TOKEN_ID_LEN))
        return "the id is not " STR(TOKEN_ID_LEN) " hex digits";
    if (!is_plain(t->name, TOKEN_NAME_MAX))
        return "the name has more than " STR(TOKEN_NAME_MAX) " bytes or some that cannot be shown";
    if (!is_tenant(t->tenant))
        return "the tenant is no name";
    if (!is_time(t->made_unix_ms) || !is_time(t->expires_unix_ms) || !is_time(t->revoked_unix_ms) || !is_time(t->last_used_unix_ms))
        return "a time is out of bounds";
    return scope_fault(t);
}

/* --- boxes --- */

static int none_of(const char *what, const char *name, struct pale_err *e)
{
    char shown[80];
    return err_set(e, PALE_NOT_FOUND, "the registry knows no %s %s", what,
                   quote_into(shown, sizeof(shown), name, strnlen(name, STATEMENT_TEXT_MAX)));
}

/* The row at hand as a box of the caller's, texts and all in one piece. */
static int read_box(struct statement *u, struct registry_box **ret, struct pale_err *e)
{
    const char *tenant = statement_text(u), *name = statement_text(u), *key = statement_text(u);
    own_mem struct registry_box *b = malloc(sizeof(*b) + strlen(tenant) + strlen(name) + strlen(key) + 3);
    if (!b)
        return err_nomem(e);
    char *at = (char *)(b + 1);
    b->tenant = append(&at, tenant);
    b->name = append(&at, name);
    b->key = append(&at, key);
    statement_bytes(u, b->asked, SHA256_BYTES);
    b->made_unix_ms = statement_int(u);
    b->expires_unix_ms = statement_int(u);
    b->idle_ms = statement_int(u);
    b->born = (uint64_t)statement_int(u);
    int code = verdict(u, "box", box_fault(b), e);
    if (code == 0)
        *ret = take_mem(&b);
    return code;
}

/* 1 with a box, 0 without. */
static int seek_box(struct registry *r, enum query q, const char *first, const char *second, struct registry_box **ret, struct pale_err *e)
{
    own_statement u = statement_begin(r->kept[q]);
    statement_give_text(&u, first);
    statement_give_text(&u, second);
    int n = statement_step(&u, e);
    if (n <= 0)
        return n;
    int code = read_box(&u, ret, e);
    return code < 0 ? code : 1;
}

int registry_box_put(struct registry *r, const struct registry_box *b, struct pale_err *e)
{
    int64_t n = 0;
    own_statement u = statement_begin(r->kept[BOX_PUT]);
    const char *fault = box_fault(b);
    if (fault)
        return err_set(e, PALE_BAD_INPUT, "terms of a box: %s", fault);
    statement_give_text(&u, b->tenant);
    statement_give_text(&u, b->name);
    statement_give_text(&u, b->key);
    statement_give_bytes(&u, b->asked, SHA256_BYTES);
    statement_give_int(&u, b->made_unix_ms);
    statement_give_int(&u, b->expires_unix_ms);
    statement_give_int(&u, b->idle_ms);
    statement_give_int(&u, (int64_t)b->born);
    int code = statement_run(&u, &n, e);
    if (code == 0 && n == 0)
        return err_set(e, PALE_LIMIT, "the registry holds %d boxes, which is the most; remove some", REGISTRY_BOXES_MAX);
    return code;
}

int registry_box_drop(struct registry *r, const char *tenant, const char *name, struct pale_err *e)
{
    int64_t n = 0;
    own_statement u = statement_begin(r->kept[BOX_DROP]);
    statement_give_text(&u, tenant);
    statement_give_text(&u, name);
    int code = statement_run(&u, &n, e);
    return code == 0 && n == 0 ? none_of("box", name, e) : code;
}

int registry_box_find(struct registry *r, const char *tenant, const char *name, struct registry_box **ret, struct pale_err *e)
{
    int n = seek_box(r, BOX_FIND, tenant, name, ret, e);
    return n == 0 ? none_of("box", name, e) : n < 0 ? n : 0;
}

int registry_box_find_key(struct registry *r, const char *tenant, const char *key, struct registry_box **ret, struct pale_err *e)
{
    int n = seek_box(r, BOX_FIND_KEY, tenant, key, ret, e);
    return n == 0 ? none_of("box asked for with key", key, e) : n < 0 ? n : 0;
}

/* Row by row from the last key on, so that nothing is being read while fn runs. Keys that do not rise are a damaged tree. */
int registry_box_each(struct registry *r, int (*fn)(const struct registry_box *b, void *arg, struct pale_err *e), void *arg,
                      struct pale_err *e)
{
    own_mem struct registry_box *last = NULL;
    for (;;) {
        own_mem struct registry_box *b = NULL;
        int n = seek_box(r, BOX_NEXT, last ? last->tenant : "", last ? last->name : "", &b, e);
        if (n <= 0)
            return n;
        int order = last ? strcmp(last->tenant, b->tenant) : -1;
        if (order > 0 || (order == 0 && strcmp(last->name, b->name) >= 0))
            return damaged(r->db, "box", "it is out of order", e);
        if ((n = fn(b, arg, e)) != 0)
            return n;
        free(last);
        last = take_mem(&b);
    }
}

/* --- tokens --- */

bool registry_token_is_good(const struct registry_token *t, int64_t now_unix_ms)
{
    return t->revoked_unix_ms == 0 && (t->expires_unix_ms == 0 || now_unix_ms < t->expires_unix_ms);
}

static int read_token(struct statement *u, struct registry_token **ret, struct pale_err *e)
{
    char id[TOKEN_ID_LEN + 1] = "";
    statement_short_text(u, id, sizeof(id));
    const char *name = statement_text(u);
    int64_t scope = statement_int(u);
    const char *tenant = statement_text(u);
    own_mem struct registry_token *t = calloc(1, sizeof(*t) + strlen(name) + strlen(tenant) + 2);
    if (!t)
        return err_nomem(e);
    char *at = (char *)(t + 1);
    memcpy(t->id, id, sizeof(id));
    t->name = append(&at, name);
    t->tenant = append(&at, tenant);
    t->scope = scope >= REGISTRY_SCOPE_BOX && scope <= REGISTRY_SCOPE_OPERATOR ? (enum registry_scope)scope : 0;
    statement_short_text(u, t->box, sizeof(t->box));
    t->rights = (uint64_t)statement_int(u);
    t->made_unix_ms = statement_int(u);
    t->expires_unix_ms = statement_int(u);
    t->revoked_unix_ms = statement_int(u);
    t->last_used_unix_ms = statement_int(u);
    t->born = (uint64_t)statement_int(u);
    int code = verdict(u, "token", token_fault(t), e);
    if (code == 0)
        *ret = take_mem(&t);
    return code;
}

/* Ends the use that was begun and bound: 1 with a token, 0 without. */
static int seek_token(struct statement *u, struct registry_token **ret, struct pale_err *e)
{
    int n = statement_step(u, e);
    if (n <= 0)
        return n;
    int code = read_token(u, ret, e);
    return code < 0 ? code : 1;
}

static int seek_token_by_id(struct registry *r, enum query q, const char *id, struct registry_token **ret, struct pale_err *e)
{
    own_statement u = statement_begin(r->kept[q]);
    statement_give_text(&u, id);
    return seek_token(&u, ret, e);
}

int registry_token_add(struct registry *r, const struct registry_token *t, const uint8_t hash[SHA256_BYTES], struct pale_err *e)
{
    int64_t n = 0;
    own_statement u = statement_begin(r->kept[TOKEN_ADD]);
    const char *fault = token_fault(t);
    if (fault)
        return err_set(e, PALE_BAD_INPUT, "token: %s", fault);
    statement_give_bytes(&u, hash, SHA256_BYTES);
    statement_give_text(&u, t->id);
    statement_give_text(&u, t->name);
    statement_give_int(&u, t->scope);
    statement_give_text(&u, t->tenant);
    statement_give_text(&u, t->box);
    statement_give_int(&u, (int64_t)t->rights);
    statement_give_int(&u, t->made_unix_ms);
    statement_give_int(&u, t->expires_unix_ms);
    statement_give_int(&u, t->revoked_unix_ms);
    statement_give_int(&u, t->last_used_unix_ms);
    statement_give_int(&u, (int64_t)t->born);
    int code = statement_run(&u, &n, e);
    if (code == -PALE_EXISTS)
        return err_set(e, PALE_EXISTS, "token %s, or one of the same text, is there already; make another", t->id);
    if (code == 0 && n == 0)
        return err_set(e, PALE_LIMIT, "the registry holds %d tokens, which is the most; revoke and purge some", REGISTRY_TOKENS_MAX);
    return code;
}

int registry_token_find_hash(struct registry *r, const uint8_t hash[SHA256_BYTES], struct registry_token **ret, struct pale_err *e)
{
    own_statement u = statement_begin(r->kept[TOKEN_FIND_HASH]);
    statement_give_bytes(&u, hash, SHA256_BYTES);
    int n = seek_token(&u, ret, e);
    return n == 0 ? err_set(e, PALE_NOT_FOUND, "the registry knows no such token") : n < 0 ? n : 0;
}

int registry_token_find(struct registry *r, const char *id, struct registry_token **ret, struct pale_err *e)
{
    int n = seek_token_by_id(r, TOKEN_FIND, id, ret, e);
    return n == 0 ? none_of("token", id, e) : n < 0 ? n : 0;
}

int registry_token_each(struct registry *r, int (*fn)(const struct registry_token *t, void *arg, struct pale_err *e), void *arg,
                        struct pale_err *e)
{
    char last[TOKEN_ID_LEN + 1] = "";
    for (;;) {
        own_mem struct registry_token *t = NULL;
        int n = seek_token_by_id(r, TOKEN_NEXT, last, &t, e);
        if (n <= 0)
            return n;
        if (strcmp(last, t->id) >= 0)
            return damaged(r->db, "token", "it is out of order", e);
        memcpy(last, t->id, sizeof(last));
        if ((n = fn(t, arg, e)) != 0)
            return n;
    }
}

/* An update of one token with a time. */
static int stamp(struct registry *r, enum query q, const char *id, int64_t now_unix_ms, struct pale_err *e)
{
    int64_t n = 0;
    own_statement u = statement_begin(r->kept[q]);
    if (!is_time(now_unix_ms) || now_unix_ms == 0)
        return err_set(e, PALE_BAD_INPUT, "token: the time is out of bounds");
    statement_give_text(&u, id);
    statement_give_int(&u, now_unix_ms);
    int code = statement_run(&u, &n, e);
    return code == 0 && n == 0 ? none_of("token", id, e) : code;
}

int registry_token_revoke(struct registry *r, const char *id, int64_t now_unix_ms, struct pale_err *e)
{
    int rc = sqlite3_exec(r->db, "PRAGMA synchronous=FULL", NULL, NULL, NULL);
    int code = rc == SQLITE_OK ? stamp(r, TOKEN_REVOKE, id, now_unix_ms, e) : database_error(r->db, rc, e, "registry: ask for durability");
    (void)sqlite3_exec(r->db, "PRAGMA synchronous=NORMAL", NULL, NULL, NULL); /* else later changes are slower, and as right */
    return code;
}

int registry_token_touch(struct registry *r, const char *id, int64_t now_unix_ms, struct pale_err *e)
{
    return stamp(r, TOKEN_TOUCH, id, now_unix_ms, e);
}

int registry_token_purge(struct registry *r, int64_t now_unix_ms, unsigned days, uint64_t *ret_gone, struct pale_err *e)
{
    int64_t n = 0;
    own_statement u = statement_begin(r->kept[TOKEN_PURGE]);
    if (!is_time(now_unix_ms))
        return err_set(e, PALE_BAD_INPUT, "token: the time is out of bounds");
    statement_give_int(&u, now_unix_ms - (int64_t)days * DAY_MS);
    int code = statement_run(&u, &n, e);
    if (code == 0 && ret_gone)
        *ret_gone = (uint64_t)n;
    return code;
}
