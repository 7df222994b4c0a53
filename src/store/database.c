/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how a SQLite file of ours comes to be open.
 *
 * How it works: whoever opens holds a lock on the folder, so that one process judges, makes or migrates at a time. A file is first
 * opened to read and judged: whose it is, which version, whether its pages fit together. Nobody has it open if there is neither a
 * -wal nor a -shm beside it; then it is read as immutable, which makes neither. Else the truth is in both files, and it is read through
 * the -wal, with the file locked and nothing brought home. Only what passes is opened to write. Who has it open has it alone, and nothing
 * of it is mapped: a write that finds no room is an error, and no signal.
 *
 * A new file is made in memory and gets its name when it is whole and on the disk: no crash leaves half of one, so an empty
 * file is a loss to be told and not a database to be filled. From birth it is in WAL mode: a process killed at any instant loses
 * nothing it has committed, and a rollback journal beside it is not ours.
 *
 * The file is read as hostile: SQLite's defensive mode, no triggers, no views, no extensions, small limits. */
#include "store/database.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/path.h"
#include "base/quote.h"

#define LOCK_TRIES 500
#define LOCK_PAUSE_MS 10
#define SUFFIX_MAX 8 /* "-journal" */

/* Where in the file's head SQLite keeps the versions it takes to write and read it; 2 is WAL. */
#define HEAD_WRITE_VERSION 18
#define HEAD_READ_VERSION 19
#define HEAD_BYTES 100

struct place {
    const struct database_kind *kind;
    const char *name;          /* in the folder */
    char path[PATH_BYTES_MAX]; /* with no symlink in it */
    bool is_there, is_shared;  /* is_shared: a -wal or -shm is beside it */
};

static enum pale_code code_of(int rc)
{
    switch (rc & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return PALE_BUSY;
    case SQLITE_FULL:
        return PALE_NO_SPACE;
    case SQLITE_NOMEM:
        return PALE_NO_MEMORY;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_TOOBIG:
    case SQLITE_MISMATCH:
    case SQLITE_ERROR: /* our statements are fixed: if one does not fit, the schema is not ours */
        return PALE_CORRUPT;
    case SQLITE_CONSTRAINT:
        return PALE_EXISTS;
    case SQLITE_IOERR:
        return rc == SQLITE_IOERR_NOMEM ? PALE_NO_MEMORY : rc == SQLITE_IOERR_CORRUPTFS ? PALE_CORRUPT : PALE_OS;
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
    case SQLITE_PROTOCOL:
        return PALE_OS;
    default:
        return PALE_INTERNAL;
    }
}

int database_error(sqlite3 *db, int rc, struct pale_err *e, const char *fmt, ...)
{
    char phrase[200], why[300];
    enum pale_code code = code_of(rc);
    const char *text = db ? sqlite3_errmsg(db) : sqlite3_errstr(rc);
    int os = db && code == PALE_OS ? sqlite3_system_errno(db) : 0;
    if (os == ENOSPC || os == EDQUOT)
        code = PALE_NO_SPACE;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(phrase, sizeof(phrase), fmt, ap);
    va_end(ap);
    quote_into(why, sizeof(why), text, strlen(text));
    int r = err_set(e, code, "%s: %s%s%s", phrase, why, os ? ": " : "", os ? strerror(os) : "");
    if (e)
        e->os = os;
    return r;
}

void database_close(sqlite3 **db)
{
    if (*db && sqlite3_close(*db) != SQLITE_OK)
        assert(!"a statement of the database is still there");
    *db = NULL;
}

/* What must be true of a file of ours, said with the remedy. */
static int refuse(const struct place *p, enum pale_code code, struct pale_err *e, const char *why)
{
    return err_set(e, code, "%s; move it away, and %s-wal with it, to begin with a new one (%s)", why, p->name, p->kind->loss);
}

/* --- the folder and the files in it --- */

static int open_folder(const char *path, struct place *p, int *ret_fd, struct pale_err *e)
{
    char dir[PATH_BYTES_MAX];
    struct stat st;
    if (!path_is_normal(path) || strcmp(path, "/") == 0 || strlen(path) > sizeof(dir) - SUFFIX_MAX - 1)
        return err_set(e, PALE_BAD_INPUT, "not an absolute path, or one too long");
    p->name = strrchr(path, '/') + 1;
    snprintf(dir, sizeof(dir), "%.*s", p->name - path > 1 ? (int)(p->name - path - 1) : 1, path);
    if (mkdir(dir, 0700) < 0 && errno != EEXIST)
        return err_os(e, "make folder %s", dir);
    own_fd fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_os(e, "open folder %s", dir);
    if (st.st_uid != geteuid() || (st.st_mode & 022))
        return err_set(e, PALE_DENIED, "its folder must be yours and writable by nobody else (chown, chmod 700)");
    own_mem char *real = realpath(dir, NULL);
    if (!real)
        return err_os(e, "look for folder %s", dir);
    if (!path_join(p->path, sizeof(p->path) - SUFFIX_MAX, real, p->name))
        return err_set(e, PALE_BAD_INPUT, "its real path is too long");
    *ret_fd = take_fd(&fd);
    return 0;
}

static int lock_folder(int dir, struct pale_err *e)
{
    const struct timespec pause = {.tv_nsec = LOCK_PAUSE_MS * 1000000L};
    for (int tries = 0; flock(dir, LOCK_EX | LOCK_NB) < 0; tries++) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return err_os(e, "lock its folder");
        if (tries == LOCK_TRIES)
            return err_set(e, PALE_BUSY, "another process has been opening it for %d s; try again", LOCK_TRIES * LOCK_PAUSE_MS / 1000);
        nanosleep(&pause, NULL);
    }
    return 0;
}

static int look(int dir, struct place *p, const char *suffix, bool *ret_there, struct pale_err *e)
{
    char name[PATH_BYTES_MAX];
    struct stat st;
    snprintf(name, sizeof(name), "%s%s", p->name, suffix);
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        *ret_there = false;
        return errno == ENOENT ? 0 : err_os(e, "look at %s", name);
    }
    *ret_there = true;
    if (!S_ISREG(st.st_mode))
        return err_set(e, PALE_DENIED, "%s is %s, not a file; remove it", name, S_ISLNK(st.st_mode) ? "a symlink" : "something else");
    if (st.st_uid != geteuid() || (st.st_mode & 077))
        return err_set(e, PALE_DENIED, "%s must be yours and open to nobody else (chown, chmod 600)", name);
    if (suffix[0] == 0 && st.st_size == 0)
        return refuse(p, PALE_CORRUPT, e, "the file is empty");
    if (suffix[0] == 0 && st.st_size > p->kind->file_max_bytes)
        return refuse(p, PALE_CORRUPT, e, "the file is larger than any of ours");
    if (strcmp(suffix, "-journal") == 0 && p->is_there && st.st_size > 0)
        return refuse(p, PALE_CORRUPT, e, "another program was interrupted while it changed the file");
    return 0;
}

static int look_around(int dir, struct place *p, struct pale_err *e)
{
    bool has_wal = false, has_shm = false, has_journal = false;
    int r = look(dir, p, "", &p->is_there, e);
    if (r == 0)
        r = look(dir, p, "-wal", &has_wal, e);
    if (r == 0)
        r = look(dir, p, "-shm", &has_shm, e);
    if (r == 0)
        r = look(dir, p, "-journal", &has_journal, e);
    p->is_shared = has_wal || has_shm;
    return r;
}

/* --- a connection --- */

static const struct {
    int op, value;
} locks[] = {
    {SQLITE_DBCONFIG_DEFENSIVE, 1},   {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0}, {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
    {SQLITE_DBCONFIG_ENABLE_VIEW, 0}, {SQLITE_DBCONFIG_ENABLE_FKEY, 1},    {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
    {SQLITE_DBCONFIG_DQS_DML, 0},     {SQLITE_DBCONFIG_DQS_DDL, 0},
};

static const struct {
    int what, most;
} limits[] = {
    {SQLITE_LIMIT_LENGTH, 16384},       /* a row; the longest of ours has about a kilobyte */
    {SQLITE_LIMIT_SQL_LENGTH, 16384},   /* a step of a migration is the longest text */
    {SQLITE_LIMIT_COLUMN, 64},          /* columns of a table and of an answer */
    {SQLITE_LIMIT_VARIABLE_NUMBER, 64}, /* values of a statement */
    {SQLITE_LIMIT_ATTACHED, 0},         /* nothing is attached */
    {SQLITE_LIMIT_TRIGGER_DEPTH, 1},    /* there are none */
};

/* Memory: 256 KiB of pages, sorting in memory, nothing mapped. What is deleted is overwritten, whatever
 * the distribution's default. The -wal is brought home at 1 MiB. */
static const char settings[] = "PRAGMA cache_size=-256; PRAGMA mmap_size=0; PRAGMA temp_store=MEMORY; PRAGMA cell_size_check=ON;"
                               "PRAGMA secure_delete=ON; PRAGMA synchronous=NORMAL; PRAGMA wal_autocheckpoint=256;"
                               "PRAGMA journal_size_limit=1048576;";

static int connect_to(const char *name, int flags, sqlite3 **ret, struct pale_err *e)
{
    own_database *db = NULL;
    int rc = sqlite3_open_v2(name, &db, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_EXRESCODE, NULL);
    if (rc != SQLITE_OK)
        return database_error(db, rc, e, "open");
    /* Before the first look at a -wal: its index then lies in memory of our own, and not in a mapped file, which ends the process when
     * the disk is full. Nobody else has the file open meanwhile. */
    rc = sqlite3_exec(db, "PRAGMA locking_mode=EXCLUSIVE", NULL, NULL, NULL);
    for (size_t i = 0; i < sizeof(locks) / sizeof(locks[0]) && rc == SQLITE_OK; i++)
        rc = sqlite3_db_config(db, locks[i].op, locks[i].value, NULL);
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
        sqlite3_limit(db, limits[i].what, limits[i].most);
    if (rc != SQLITE_OK)
        return database_error(db, rc, e, "open");
    *ret = take_mem(&db);
    return 0;
}

/* The first value of a statement's first row, as a number or as text made harmless; either may be NULL. */
static int ask(sqlite3 *db, const char *sql, int64_t *ret, char *ret_text, size_t cap)
{
    sqlite3_stmt *s = NULL;
    int rc = sqlite3_prepare_v3(db, sql, -1, 0, &s, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(s);
    if (rc == SQLITE_ROW && ret)
        *ret = sqlite3_column_int64(s, 0);
    if (rc == SQLITE_ROW && ret_text) {
        const char *text = (const char *)sqlite3_column_text(s, 0);
        quote_into(ret_text, cap, text ? text : "", text ? strlen(text) : 0);
    }
    if (rc == SQLITE_DONE)
        rc = SQLITE_CORRUPT;
    sqlite3_finalize(s);
    return rc == SQLITE_ROW ? SQLITE_OK : rc;
}

/* --- judging --- */

/* An address for SQLite that lets it take no lock and make no file. */
static int address(const char *path, struct buf *ret, struct pale_err *e)
{
    buf_init(ret, 3 * PATH_BYTES_MAX + 32);
    buf_add_text(ret, "file:");
    for (const char *c = path; *c; c++)
        buf_addf(ret, *c == '%' || *c == '?' || *c == '#' ? "%%%02x" : "%c", (unsigned char)*c);
    buf_add_text(ret, "?immutable=1");
    (void)buf_text(ret);
    return ret->failed ? err_nomem(e) : 0;
}

/* quick_check tells a page that could not be read as a finding, with SQLite's code in its text: no memory, or the disk. That is
 * no damage. The code, or SQLITE_CORRUPT. */
static int code_in(const char *verdict)
{
    const char *at = strstr(verdict, "error code");
    int rc = 0;
    at = at ? at + strcspn(at, "0123456789") : "";
    for (; *at >= '0' && *at <= '9' && rc < 100000; at++)
        rc = rc * 10 + (*at - '0');
    return rc ? rc : SQLITE_CORRUPT;
}

static int judge_content(sqlite3 *db, const struct place *p, struct pale_err *e)
{
    char verdict[160] = "", why[260];
    int64_t id = 0, version = 0;
    int rc = ask(db, "PRAGMA application_id", &id, NULL, 0);
    if (rc == SQLITE_OK)
        rc = ask(db, "PRAGMA user_version", &version, NULL, 0);
    if (rc == SQLITE_OK && id != p->kind->application_id)
        return refuse(p, PALE_CORRUPT, e, "the file is a database of another program");
    if (rc == SQLITE_OK && version > p->kind->version) {
        snprintf(why, sizeof(why), "a newer pale wrote it (schema %" PRId64 ", this one knows %d); use that one", version,
                 p->kind->version);
        return refuse(p, PALE_UNSUPPORTED, e, why);
    }
    if (rc == SQLITE_OK && version < 1)
        return refuse(p, PALE_CORRUPT, e, "the file is damaged: it has no version");
    if (rc == SQLITE_OK) /* these look at the schema, which is not asked before we know whose it is */
        rc = sqlite3_exec(db, settings, NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = ask(db, "PRAGMA quick_check(1)", NULL, verdict, sizeof(verdict));
    if (rc == SQLITE_OK && strcmp(verdict, "ok") == 0)
        return 0;
    if (rc != SQLITE_OK)
        quote_into(verdict, sizeof(verdict), sqlite3_errmsg(db), strlen(sqlite3_errmsg(db)));
    else if ((rc = code_in(verdict)) != SQLITE_CORRUPT)
        db = NULL; /* its own last error is another */
    int r = database_error(db, rc, e, "read");
    if (r != -PALE_CORRUPT)
        return r;
    snprintf(why, sizeof(why), "the file is damaged or not a database (%s)", verdict);
    return refuse(p, PALE_CORRUPT, e, why);
}

static int judge(const struct place *p, struct pale_err *e)
{
    own_buf uri = {0};
    own_database *db = NULL;
    int r = p->is_shared ? 0 : address(p->path, &uri, e);
    if (r == 0 && p->is_shared)
        r = connect_to(p->path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW, &db, e); /* only so can it be had alone */
    else if (r == 0)
        r = connect_to(buf_text(&uri), SQLITE_OPEN_READONLY | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_URI, &db, e);
    if (r == 0 && sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL) != SQLITE_OK)
        return err_set(e, PALE_INTERNAL, "SQLite does not know how to leave a file alone");
    return r < 0 ? r : judge_content(db, p, e);
}

/* --- making and migrating --- */

static int one_step(sqlite3 *db, const struct database_kind *kind, struct pale_err *e)
{
    int64_t version = 0;
    char mark[64];
    int rc = sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = ask(db, "PRAGMA user_version", &version, NULL, 0);
    if (rc == SQLITE_OK && version >= 0 && version < kind->version) {
        snprintf(mark, sizeof(mark), "PRAGMA user_version=%d", (int)version + 1);
        rc = sqlite3_exec(db, kind->steps[version], NULL, NULL, NULL);
        if (rc == SQLITE_OK)
            rc = sqlite3_exec(db, mark, NULL, NULL, NULL);
    }
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        return 0;
    int r = database_error(db, rc, e, "bring it from schema %d to the next", (int)version);
    if (!sqlite3_get_autocommit(db))
        (void)sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    return r;
}

static int migrate(sqlite3 *db, const struct database_kind *kind, struct pale_err *e)
{
    int64_t version = 0;
    for (;;) {
        int rc = ask(db, "PRAGMA user_version", &version, NULL, 0);
        if (rc != SQLITE_OK)
            return database_error(db, rc, e, "read");
        if (version >= kind->version)
            return 0;
        int r = one_step(db, kind, e);
        if (r < 0)
            return r;
    }
}

/* A -wal that was left behind would be taken for the new file's. */
static int make(int dir, const struct place *p, struct pale_err *e)
{
    static const char *const beside[] = {"-wal", "-shm", "-journal"};
    char text[PATH_BYTES_MAX];
    own_database *db = NULL;
    sqlite3_int64 size = 0;
    int r = connect_to(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_MEMORY, &db, e);
    if (r < 0)
        return r;
    snprintf(text, sizeof(text), "PRAGMA page_size=4096; PRAGMA application_id=%" PRId32, p->kind->application_id);
    int rc = sqlite3_exec(db, text, NULL, NULL, NULL);
    if (rc != SQLITE_OK)
        return database_error(db, rc, e, "make");
    if ((r = migrate(db, p->kind, e)) < 0)
        return r;
    for (size_t i = 0; i < sizeof(beside) / sizeof(beside[0]); i++) {
        snprintf(text, sizeof(text), "%s%s", p->name, beside[i]);
        if (unlinkat(dir, text, 0) < 0 && errno != ENOENT)
            return err_os(e, "remove %s", text);
    }
    unsigned char *image = sqlite3_serialize(db, "main", &size, 0);
    if (!image || size < HEAD_BYTES) {
        sqlite3_free(image);
        return err_nomem(e);
    }
    image[HEAD_WRITE_VERSION] = image[HEAD_READ_VERSION] = 2;
    r = fd_write_new(dir, p->name, image, (size_t)size, 0600, true, e);
    sqlite3_free(image);
    return r;
}

static int open_to_write(const struct place *p, sqlite3 **ret, struct pale_err *e)
{
    char mode[16] = "";
    own_database *db = NULL;
    int r = connect_to(p->path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW, &db, e);
    if (r < 0)
        return r;
    int rc = sqlite3_exec(db, settings, NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = ask(db, "PRAGMA journal_mode=WAL", NULL, mode, sizeof(mode));
    if (rc != SQLITE_OK)
        return database_error(db, rc, e, "open");
    if (strcmp(mode, "wal") != 0)
        return err_set(e, PALE_UNSUPPORTED, "its file system cannot hold a write-ahead log; put it on a local one");
    if ((r = migrate(db, p->kind, e)) < 0)
        return r;
    *ret = take_mem(&db);
    return 0;
}

/* Whoever has it may be about to end: the daemon before this one, for the last of its clients. */
static int open_alone(const struct place *p, sqlite3 **ret, struct pale_err *e)
{
    const struct timespec pause = {.tv_nsec = LOCK_PAUSE_MS * 1000000L};
    for (int tries = 0;; tries++) {
        int r = judge(p, e);
        if (r == 0)
            r = open_to_write(p, ret, e);
        if (r != -PALE_BUSY || tries == LOCK_TRIES)
            return r;
        nanosleep(&pause, NULL);
    }
}

int database_open(const char *path, const struct database_kind *kind, sqlite3 **ret, struct pale_err *e)
{
    struct place p = {.kind = kind};
    own_fd dir = -1;
    int r = open_folder(path, &p, &dir, e);
    if (r == 0)
        r = lock_folder(dir, e);
    if (r == 0)
        r = look_around(dir, &p, e);
    if (r == 0 && !p.is_there) {
        r = make(dir, &p, e);
        p.is_shared = false;
    }
    if (r == 0)
        r = open_alone(&p, ret, e);
    if (r < 0 && e)
        (void)err_prefix(e, "%s %s", kind->what, path);
    return r;
}
