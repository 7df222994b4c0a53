/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for store/database, by way of the registry: files that are refused and left alone, migrations, what outlives a kill. */
#include "store/store_test.h"

#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"

#define PUTS 200

/* --- the file --- */

static void new_file_is_private_and_whole(void **state)
{
    struct stat st;
    char dir[96];
    (void)state;
    umask(0);
    start();
    umask(022);
    snprintf(dir, sizeof(dir), "%s/pale", top);
    assert_true(stat(dir, &st) == 0 && (st.st_mode & 07777) == 0700);
    assert_true(stat(path, &st) == 0 && (st.st_mode & 07777) == 0600 && st.st_size > 0);
    put("", "web", "");
    assert_true(stat(beside("-wal"), &st) == 0 && (st.st_mode & 07777) == 0600);
    assert_int_not_equal(access(beside("-shm"), F_OK), 0); /* mapped, it would be what a full disk ends the process with */
    stop();
    assert_int_not_equal(access(beside("-wal"), F_OK), 0);
}

static void leftovers_of_a_lost_file_do_not_become_the_new_ones(void **state)
{
    own_buf wal = {0};
    (void)state;
    start();
    put("", "old", "");
    slurp(beside("-wal"), &wal);
    stop();
    assert_int_equal(unlink(path), 0);
    spill(beside("-wal"), wal.data, wal.len);
    start();
    assert_int_equal(boxes(), 0);
}

static void symlink_is_refused(void **state)
{
    char target[128];
    struct stat st;
    (void)state;
    make_folder();
    snprintf(target, sizeof(target), "%s/elsewhere", top);
    assert_int_equal(symlink(target, path), 0);
    assert_int_equal(registry_open(path, &reg, &err), -PALE_DENIED);
    assert_non_null(strstr(err.text, "symlink"));
    assert_int_not_equal(lstat(target, &st), 0);
    assert_int_equal(unlink(path), 0);
    start();
    stop();
    assert_int_equal(rename(path, target), 0);
    assert_int_equal(symlink(target, path), 0);
    assert_int_equal(registry_open(path, &reg, &err), -PALE_DENIED);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rename(target, path), 0);
    assert_int_equal(symlink(target, beside("-wal")), 0);
    assert_int_equal(registry_open(path, &reg, &err), -PALE_DENIED);
}

static void what_others_can_reach_is_refused(void **state)
{
    static const mode_t bad[] = {0666, 0660, 0620, 0602, 0644};
    char dir[96];
    (void)state;
    start();
    stop();
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(chmod(path, bad[i]), 0);
        refused_untouched(PALE_DENIED, "chmod 600");
    }
    assert_int_equal(chmod(path, 0600), 0);
    snprintf(dir, sizeof(dir), "%s/pale", top);
    assert_int_equal(chmod(dir, 0770), 0);
    refused_untouched(PALE_DENIED, "chmod 700");
    assert_int_equal(chmod(dir, 0755), 0);
    start();
}

static void what_another_owns_is_refused(void **state)
{
    char dir[96];
    (void)state;
    if (geteuid() != 0) {
        print_message("only root can give a file away\n");
        skip();
    }
    start();
    stop();
    assert_int_equal(chown(path, 12345, (gid_t)-1), 0);
    refused_untouched(PALE_DENIED, "yours");
    assert_int_equal(chown(path, 0, (gid_t)-1), 0);
    snprintf(dir, sizeof(dir), "%s/pale", top);
    assert_int_equal(chown(dir, 12345, (gid_t)-1), 0);
    refused_untouched(PALE_DENIED, "yours");
}

static void folder_and_fifo_are_refused_at_once(void **state)
{
    (void)state;
    make_folder();
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(registry_open(path, &reg, &err), -PALE_DENIED);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(registry_open(path, &reg, &err), -PALE_DENIED);
    assert_int_equal(registry_open("registry.db", &reg, &err), -PALE_BAD_INPUT);
    assert_int_equal(registry_open("/nowhere/at/all/registry.db", &reg, &err), -PALE_NOT_FOUND);
}

static void path_may_hold_what_addresses_give_a_meaning(void **state)
{
    (void)state;
    snprintf(path, sizeof(path), "%s/a %%20?immutable=0#b/r?x#y%%41.db", top);
    start();
    put("", "web", "");
    stop();
    assert_int_equal(access(path, F_OK), 0);
    start();
    assert_int_equal(boxes(), 1);
}

static void folder_that_is_reached_by_a_symlink_is_taken(void **state)
{
    char link[96];
    (void)state;
    start();
    put("", "web", "");
    stop();
    snprintf(path, sizeof(path), "%s/pale", top);
    snprintf(link, sizeof(link), "%s/link", top);
    assert_int_equal(symlink(path, link), 0);
    snprintf(path, sizeof(path), "%s/link/registry.db", top);
    start();
    assert_int_equal(boxes(), 1);
}

/* --- versions --- */

static const char version_one[] =
    "PRAGMA application_id=0x50414c52;"
    "CREATE TABLE boxes (tenant TEXT NOT NULL, name TEXT NOT NULL, key TEXT NOT NULL, asked BLOB NOT NULL, made_ms INTEGER NOT NULL,"
    " expires_ms INTEGER NOT NULL, idle_ms INTEGER NOT NULL, PRIMARY KEY (tenant, name)) STRICT, WITHOUT ROWID;"
    "CREATE UNIQUE INDEX boxes_key ON boxes (tenant, key) WHERE key <> '';"
    "CREATE TABLE tokens (hash BLOB NOT NULL PRIMARY KEY, id TEXT NOT NULL UNIQUE, name TEXT NOT NULL, scope INTEGER NOT NULL,"
    " tenant TEXT NOT NULL, box TEXT NOT NULL, rights INTEGER NOT NULL, made_ms INTEGER NOT NULL, expires_ms INTEGER NOT NULL,"
    " revoked_ms INTEGER NOT NULL) STRICT, WITHOUT ROWID;"
    "INSERT INTO boxes VALUES ('acme', 'web', 'k', zeroblob(32), 5, 0, 7);"
    "INSERT INTO tokens VALUES (zeroblob(32), '00000000000000aa', 'old', 3, '', '', -1, 5, 0, 0);"
    "PRAGMA user_version=1;";

static void version_one_is_migrated_with_all_it_holds(void **state)
{
    own_mem struct registry_token *t = NULL;
    own_mem struct registry_box *b = NULL;
    static const uint8_t hash[SHA256_BYTES];
    (void)state;
    make_folder();
    meddle("PRAGMA journal_mode=WAL");
    meddle(version_one);
    start();
    assert_int_equal(registry_token_find_hash(reg, hash, &t, &err), 0);
    assert_string_equal(t->name, "old");
    assert_true(t->rights == UINT64_MAX);
    assert_int_equal(t->last_used_unix_ms, 0);
    assert_int_equal(registry_token_touch(reg, "00000000000000aa", NOW, &err), 0);
    assert_int_equal(registry_box_find_key(reg, "acme", "k", &b, &err), 0);
    assert_int_equal(b->idle_ms, 7);
    stop();
    start();
    assert_int_equal(tokens(), 1);
}

static void migrated_file_has_the_schema_of_a_new_one(void **state)
{
    static const char *const sql = "SELECT group_concat(sql || '', ';') FROM sqlite_schema ORDER BY name";
    char text[2][4096] = {"", ""};
    (void)state;
    for (int old = 0; old < 2; old++) {
        sqlite3 *db = NULL;
        sqlite3_stmt *s = NULL;
        if (old) {
            make_folder();
            assert_int_equal(unlink(path), 0);
            meddle(version_one);
        }
        start();
        stop();
        assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
        assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &s, NULL), SQLITE_OK);
        assert_int_equal(sqlite3_step(s), SQLITE_ROW);
        snprintf(text[old], sizeof(text[old]), "%s", (const char *)sqlite3_column_text(s, 0));
        sqlite3_finalize(s);
        sqlite3_close(db);
    }
    assert_string_equal(text[0], text[1]);
    assert_non_null(strstr(text[0], "last_used_ms"));
}

static void migration_that_fails_leaves_the_old_version(void **state)
{
    own_buf before = {0};
    (void)state;
    make_folder();
    meddle(version_one);
    meddle("ALTER TABLE tokens ADD COLUMN last_used_ms INTEGER"); /* in the way of the step */
    slurp(path, &before);
    assert_int_equal(registry_open(path, &reg, &err), -PALE_CORRUPT);
    sqlite3 *db = NULL;
    sqlite3_stmt *s = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &s, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    assert_int_equal(sqlite3_column_int(s, 0), 1);
    sqlite3_finalize(s);
    sqlite3_close(db);
}

static void newer_file_is_refused_untouched(void **state)
{
    (void)state;
    start();
    put("", "web", "");
    stop();
    meddle("CREATE TABLE future (x); PRAGMA user_version=99");
    refused_untouched(PALE_UNSUPPORTED, "newer pale");
    meddle("PRAGMA user_version=2147483647");
    refused_untouched(PALE_UNSUPPORTED, "2147483647");
}

static void newer_version_that_is_still_in_the_wal_is_seen(void **state)
{
    own_buf file = {0}, wal = {0};
    sqlite3 *db = NULL;
    (void)state;
    start();
    stop();
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "PRAGMA user_version=99", NULL, NULL, NULL), SQLITE_OK);
    slurp(path, &file);
    slurp(beside("-wal"), &wal);
    sqlite3_close(db);
    spill(path, file.data, file.len);
    spill(beside("-wal"), wal.data, wal.len);
    assert_int_equal(chmod(beside("-wal"), 0600), 0);
    refused_untouched(PALE_UNSUPPORTED, "newer pale");
}

static void file_of_another_program_is_refused_untouched(void **state)
{
    (void)state;
    make_folder();
    meddle("CREATE TABLE cookies (x); PRAGMA user_version=1");
    refused_untouched(PALE_CORRUPT, "another program");
    meddle("PRAGMA application_id=1");
    refused_untouched(PALE_CORRUPT, "another program");
    meddle("PRAGMA application_id=0x50414c52; PRAGMA user_version=0");
    refused_untouched(PALE_CORRUPT, "no version");
    meddle("PRAGMA user_version=-1");
    refused_untouched(PALE_CORRUPT, "no version");
    meddle("PRAGMA user_version=3"); /* ours by its marks, but not by its tables */
    assert_int_equal(registry_open(path, &reg, &err), -PALE_CORRUPT);
    assert_non_null(strstr(err.text, path));
}

static void garbage_is_refused_untouched(void **state)
{
    char bytes[8192];
    (void)state;
    make_folder();
    spill(path, "", 0);
    refused_untouched(PALE_CORRUPT, "empty");
    for (size_t n = 1; n <= sizeof(bytes); n = n * 2 + 1) {
        for (size_t i = 0; i < n; i++)
            bytes[i] = (char)any(256);
        spill(path, bytes, n);
        refused_untouched(PALE_CORRUPT, "move it away");
        memset(bytes, 0, n);
        spill(path, bytes, n);
        refused_untouched(PALE_CORRUPT, "move it away");
    }
    spill(path, "", 0);
    assert_int_equal(truncate(path, (off_t)REGISTRY_FILE_MAX + 1), 0);
    assert_int_equal(registry_open(path, &reg, &err), -PALE_CORRUPT);
    assert_non_null(strstr(err.text, "larger"));
}

static void interrupted_change_of_another_program_is_refused_untouched(void **state)
{
    (void)state;
    start();
    stop();
    spill(beside("-journal"), "something", 9);
    refused_untouched(PALE_CORRUPT, "interrupted");
}

/* --- damage --- */

static void truncated_file_is_refused_untouched(void **state)
{
    own_buf whole = {0};
    (void)state;
    fill(100);
    stop();
    slurp(path, &whole);
    assert_true(whole.len > 20000);
    for (size_t n = 0; n < whole.len; n += 512) {
        spill(path, whole.data, n);
        refused_untouched(PALE_CORRUPT, n ? "damaged" : "empty");
    }
    spill(path, whole.data, whole.len);
    start();
    assert_int_equal(boxes(), 100);
    assert_int_equal(tokens(), 100);
}

static void truncated_wal_loses_the_newest_puts_alone(void **state)
{
    own_buf file = {0}, wal = {0};
    char name[32];
    int before = 0;
    (void)state;
    start();
    for (unsigned i = 0; i < 12; i++) {
        snprintf(name, sizeof(name), "box-%03u", i);
        put("", name, "");
    }
    slurp(path, &file);
    slurp(beside("-wal"), &wal);
    stop();
    for (size_t n = 0; n <= wal.len; n = n < wal.len && n + 512 > wal.len ? wal.len : n + 512) {
        (void)unlink(beside("-shm"));
        spill(path, file.data, file.len);
        spill(beside("-wal"), wal.data, n);
        start();
        int now = boxes();
        assert_true(now >= before);
        for (int i = 0; i < now; i++) {
            own_mem struct registry_box *b = NULL;
            snprintf(name, sizeof(name), "box-%03d", i);
            assert_int_equal(registry_box_find(reg, "", name, &b, &err), 0);
        }
        before = now;
        stop();
    }
    assert_int_equal(before, 12);
}

/* Everything is tried on it; anything may be answered, but it is answered. */
static void use_damaged(void)
{
    struct registry_token t = a_token(5000);
    int n = 0;
    for (int i = 0; i < 4; i++) {
        own_mem struct registry_box *b = NULL, *by_key = NULL;
        own_mem struct registry_token *found = NULL, *by_hash = NULL;
        char name[32], key[32];
        uint8_t hash[SHA256_BYTES];
        snprintf(name, sizeof(name), "box-%03d", i * 9);
        snprintf(key, sizeof(key), "key-%d", i * 9);
        hash_of((unsigned)i, hash);
        (void)!registry_box_find(reg, i % 2 ? "acme" : "", name, &b, &err);
        (void)!registry_box_find_key(reg, i % 2 ? "acme" : "", key, &by_key, &err);
        (void)!registry_token_find(reg, "0000000000000003", &found, &err);
        (void)!registry_token_find_hash(reg, hash, &by_hash, &err);
        (void)!registry_box_drop(reg, "", name, &err);
    }
    (void)!registry_box_each(reg, count_box, &n, &err);
    (void)!registry_token_each(reg, count_token, &n, &err);
    assert_true(n <= 400);
    struct registry_box b = a_box("", "new", "new");
    (void)!registry_box_put(reg, &b, &err);
    (void)!add(&t, 5000);
    (void)!registry_token_revoke(reg, "0000000000000004", NOW, &err);
    (void)!registry_token_purge(reg, NOW, 1, NULL, &err);
}

static void damaged_bytes_never_crash(void **state)
{
    own_buf whole = {0};
    int opened = 0, refused = 0;
    (void)state;
    fill(100);
    stop();
    slurp(path, &whole);
    own_mem uint8_t *bytes = malloc(whole.len);
    assert_non_null(bytes);
    seed = 42;
    for (int round = 0; round < 250; round++) {
        memcpy(bytes, whole.data, whole.len);
        for (uint64_t n = 1 + any(4); n > 0; n--)
            bytes[round % 4 ? any(whole.len) : any(whole.len / 4096) * 4096 + any(128)] = (uint8_t)any(256);
        spill(path, bytes, whole.len);
        (void)unlink(beside("-wal"));
        (void)unlink(beside("-shm"));
        int r = registry_open(path, &reg, &err);
        assert_true(r == 0 || r == -PALE_CORRUPT || r == -PALE_UNSUPPORTED);
        opened += r == 0;
        refused += r != 0;
        if (r == 0)
            use_damaged();
        stop();
    }
    assert_true(opened > 10 && refused > 10);
}

static void trigger_in_the_file_does_not_run(void **state)
{
    (void)state;
    start();
    stop();
    meddle("CREATE TRIGGER t AFTER INSERT ON boxes BEGIN DELETE FROM boxes; END");
    start();
    put("", "web", "");
    assert_int_equal(boxes(), 1);
}

/* --- a system that says no --- */

static int refuse_writes; /* the errno, 0 is none */

static ssize_t short_of_space(int fd, const void *p, size_t n, off_t at)
{
    if (refuse_writes) {
        errno = refuse_writes;
        return -1;
    }
    return pwrite(fd, p, n, at);
}

static void full_disk_is_an_error_and_passes(void **state)
{
    struct registry_box b = a_box("", "new", "");
    static const struct {
        int os;
        enum pale_code code;
    } cases[] = {{ENOSPC, PALE_NO_SPACE}, {EIO, PALE_OS}};
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    (void)state;
    sqlite3_syscall_ptr old[2] = {vfs->xGetSystemCall(vfs, "pwrite"), vfs->xGetSystemCall(vfs, "pwrite64")};
    fill(3);
    assert_int_equal(vfs->xSetSystemCall(vfs, "pwrite", (sqlite3_syscall_ptr)short_of_space), SQLITE_OK);
    (void)vfs->xSetSystemCall(vfs, "pwrite64", (sqlite3_syscall_ptr)short_of_space);
    for (size_t i = 0; i < 2; i++) {
        struct registry_token t = a_token(100 + (unsigned)i);
        refuse_writes = cases[i].os;
        assert_int_equal(registry_box_put(reg, &b, &err), -(int)cases[i].code);
        assert_true(err.text[0]);
        assert_int_equal(add(&t, 100), -(int)cases[i].code);
        assert_int_equal(registry_token_revoke(reg, "0000000000000001", NOW, &err), -(int)cases[i].code);
        assert_int_equal(registry_box_drop(reg, "", "box-000", &err), -(int)cases[i].code);
        assert_int_equal(boxes(), 3);
        refuse_writes = 0;
        assert_int_equal(registry_box_put(reg, &b, &err), 0);
        assert_int_equal(registry_box_drop(reg, "", "new", &err), 0);
    }
    stop();
    (void)vfs->xSetSystemCall(vfs, "pwrite", old[0]);
    (void)vfs->xSetSystemCall(vfs, "pwrite64", old[1]);
    start();
    assert_int_equal(boxes(), 3);
}

static void file_that_cannot_grow_is_an_error(void **state)
{
    (void)state;
    start();
    stop();
    pid_t child = fork();
    if (child == 0) {
        struct pale_err e;
        char name[32];
        int r = registry_open(path, &reg, &e);
        signal(SIGXFSZ, SIG_IGN);
        struct rlimit most = {65536, 65536};
        if (r < 0 || setrlimit(RLIMIT_FSIZE, &most) < 0)
            _exit(1);
        for (unsigned i = 0; i < 500 && r == 0; i++) {
            snprintf(name, sizeof(name), "box-%u", i);
            struct registry_box b = a_box("", name, "");
            r = registry_box_put(reg, &b, &e);
        }
        _exit(r == -PALE_OS || r == -PALE_NO_SPACE ? 0 : 2);
    }
    int status = 0;
    assert_true(waitpid(child, &status, 0) == child && WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    start();
    assert_true(boxes() > 0);
}

static void without_memory_there_is_an_error_and_nothing_is_lost(void **state)
{
    int failed = 0;
    (void)state;
    fill(50);
    for (int round = 0; round < 2; round++) {
        for (int64_t more = 0; more < 400000; more += more < 20000 ? 512 : 20000) {
            own_mem struct registry_box *b = NULL;
            struct registry_box in = a_box("acme", "memory", "memory");
            if (round)
                stop();
            sqlite3_hard_heap_limit64(sqlite3_memory_used() + 1 + more);
            int r = round ? registry_open(path, &reg, &err) : registry_box_put(reg, &in, &err);
            if (r == 0)
                r = registry_box_find_key(reg, "acme", "memory", &b, &err);
            sqlite3_hard_heap_limit64(0);
            if (r != 0 && r != -PALE_NO_MEMORY)
                fail_msg("%d with %d bytes: %s", r, (int)more, err.text);
            failed += r != 0;
            if (!reg)
                start();
        }
    }
    assert_true(failed > 0);
    assert_int_equal(boxes(), 51);
    assert_int_equal(tokens(), 50);
}

/* --- processes --- */

static void nap_us(uint64_t us)
{
    struct timespec t = {.tv_sec = (time_t)(us / 1000000), .tv_nsec = (long)(us % 1000000) * 1000};
    nanosleep(&t, NULL);
}

/* Puts boxes and tells each that is put. */
static void put_and_tell(int pipe_fd)
{
    struct pale_err e;
    char name[32];
    if (registry_open(path, &reg, &e) < 0)
        _exit(1);
    for (unsigned char i = 0; i < PUTS; i++) {
        snprintf(name, sizeof(name), "box-%03u", i);
        struct registry_box b = a_box("", name, name);
        if (registry_box_put(reg, &b, &e) < 0 || write(pipe_fd, &i, 1) != 1)
            _exit(1);
    }
    nap_us(10000000);
    _exit(0);
}

static void acknowledged_puts_outlive_kill_9(void **state)
{
    char name[32];
    int whole = 0;
    (void)state;
    seed = (uint64_t)clock_us();
    for (int round = 0; round < 30; round++) {
        int p[2], told = 0;
        unsigned char byte;
        unsigned until = (unsigned)any(PUTS);
        assert_int_equal(pipe2(p, O_CLOEXEC), 0);
        pid_t child = fork();
        if (child == 0)
            put_and_tell(p[1]);
        close(p[1]);
        while ((unsigned)told < until && read(p[0], &byte, 1) == 1)
            told++;
        nap_us(any(300));
        kill(child, SIGKILL);
        while (read(p[0], &byte, 1) == 1)
            told++;
        close(p[0]);
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        start();
        int n = boxes();
        if (n != told && n != told + 1)
            fail_msg("%d were told and %d are there", told, n);
        for (int i = 0; i < told; i++) {
            own_mem struct registry_box *b = NULL;
            snprintf(name, sizeof(name), "box-%03d", i);
            struct registry_box want = a_box("", name, name);
            assert_int_equal(registry_box_find_key(reg, "", name, &b, &err), 0);
            same_box(b, &want);
        }
        whole += told == PUTS;
        stop();
        assert_int_equal(unlink(path), 0);
    }
    assert_true(whole < 30);
}

static void kill_9_while_opening_leaves_a_file_that_opens(void **state)
{
    (void)state;
    make_folder();
    seed = (uint64_t)clock_us();
    for (int round = 0; round < 60; round++) {
        bool is_old = round % 2;
        (void)unlink(path);
        if (is_old)
            meddle(round % 4 == 1 ? "PRAGMA journal_mode=WAL" : "PRAGMA journal_mode=DELETE");
        if (is_old)
            meddle(version_one);
        pid_t child = fork();
        if (child == 0) {
            (void)!registry_open(path, &reg, NULL);
            nap_us(10000000);
            _exit(0);
        }
        nap_us(any(4000));
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, NULL, 0), child);
        if (is_old && round % 4 == 3 && registry_open(path, &reg, &err) == -PALE_CORRUPT)
            assert_non_null(strstr(err.text, "interrupted")); /* somebody took it out of WAL mode, and we were killed changing it back */
        else if (!reg)
            start();
        if (reg)
            assert_int_equal(tokens(), is_old);
        stop();
        (void)unlink(beside("-journal"));
    }
}

static void processes_that_open_at_once_all_succeed(void **state)
{
    pid_t child[4];
    int gate[2];
    (void)state;
    for (int round = 0; round < 8; round++) {
        (void)unlink(path);
        if (round % 2) {
            make_folder();
            meddle(version_one);
        }
        assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
        for (int i = 0; i < 4; i++) {
            if ((child[i] = fork()) != 0)
                continue;
            struct pale_err e;
            struct pollfd wait = {.fd = gate[0], .events = POLLIN};
            close(gate[1]);
            poll(&wait, 1, -1);
            int r = registry_open(path, &reg, &e);
            for (int n = 0; n < 25 && r == 0; n++) {
                char name[32];
                snprintf(name, sizeof(name), "box-%d-%d", i, n);
                struct registry_box b = a_box("", name, "");
                r = registry_box_put(reg, &b, &e);
            }
            if (r < 0)
                dprintf(2, "%s\n", e.text);
            registry_close(reg);
            _exit(r < 0);
        }
        close(gate[0]);
        close(gate[1]);
        for (int i = 0; i < 4; i++) {
            int status = 0;
            assert_int_equal(waitpid(child[i], &status, 0), child[i]);
            assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        }
        start();
        assert_int_equal(boxes(), 100 + round % 2);
        stop();
    }
}

static void second_opening_waits_for_the_first_and_sees_what_it_wrote(void **state)
{
    own_mem struct registry_box *b = NULL;
    int gate[2];
    char byte = 0;
    (void)state;
    assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
    pid_t child = fork(); /* before we have it: SQLite's locks are not inherited */
    if (child == 0) {
        struct registry *other = NULL;
        (void)!read(gate[0], &byte, 1);
        int r = registry_open(path, &other, NULL);
        if (r == 0)
            r = registry_box_find(other, "", "two", &b, NULL);
        registry_close(other);
        _exit(r < 0);
    }
    start();
    put("", "one", "");
    assert_int_equal(write(gate[1], &byte, 1), 1);
    nap_us(50000);
    put("", "two", "");
    stop();
    close(gate[0]);
    close(gate[1]);
    int status = 0;
    assert_true(waitpid(child, &status, 0) == child && WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    start();
    assert_int_equal(boxes(), 2);
}

static void another_program_is_told_that_the_file_is_busy(void **state)
{
    sqlite3 *db = NULL;
    (void)state;
    start();
    put("", "web", "");
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "SELECT * FROM sqlite_master", NULL, NULL, NULL), SQLITE_BUSY);
    assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_BUSY);
    put("", "two", "");
    assert_int_equal(boxes(), 2);
    sqlite3_close(db);
}

TESTS(CASE(new_file_is_private_and_whole), CASE(leftovers_of_a_lost_file_do_not_become_the_new_ones), CASE(symlink_is_refused),
      CASE(what_others_can_reach_is_refused), CASE(what_another_owns_is_refused), CASE(folder_and_fifo_are_refused_at_once),
      CASE(path_may_hold_what_addresses_give_a_meaning), CASE(folder_that_is_reached_by_a_symlink_is_taken),
      CASE(version_one_is_migrated_with_all_it_holds), CASE(migrated_file_has_the_schema_of_a_new_one),
      CASE(migration_that_fails_leaves_the_old_version), CASE(newer_file_is_refused_untouched),
      CASE(newer_version_that_is_still_in_the_wal_is_seen), CASE(file_of_another_program_is_refused_untouched),
      CASE(garbage_is_refused_untouched), CASE(interrupted_change_of_another_program_is_refused_untouched),
      CASE(truncated_file_is_refused_untouched), CASE(truncated_wal_loses_the_newest_puts_alone), CASE(damaged_bytes_never_crash),
      CASE(trigger_in_the_file_does_not_run), CASE(full_disk_is_an_error_and_passes), CASE(file_that_cannot_grow_is_an_error),
      CASE(without_memory_there_is_an_error_and_nothing_is_lost), CASE(acknowledged_puts_outlive_kill_9),
      CASE(kill_9_while_opening_leaves_a_file_that_opens), CASE(processes_that_open_at_once_all_succeed),
      CASE(second_opening_waits_for_the_first_and_sees_what_it_wrote), CASE(another_program_is_told_that_the_file_is_busy))
