/* SPDX-License-Identifier: Apache-2.0 */
/* What the cases of store/ share: a folder for each, an open registry, and rows for it. */
#pragma once

#include "base/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "store/registry.h"

#define SOME __attribute__((unused)) static /* not every file of cases needs every one */

#define NOW INT64_C(1790000000000)
#define DAY INT64_C(86400000)

static char top[64], path[96];
static struct pale_err err;
static struct registry *reg;

/* --- the folder of a case --- */

SOME int fresh(void **state)
{
    (void)state;
    snprintf(top, sizeof(top), "/tmp/registry-test-XXXXXX");
    if (!mkdtemp(top))
        return -1;
    snprintf(path, sizeof(path), "%s/pale/registry.db", top);
    return 0;
}

SOME int clean(void **state)
{
    (void)state;
    registry_close(reg);
    reg = NULL;
    return fd_remove_tree(AT_FDCWD, top, NULL);
}

SOME void start(void)
{
    int r = registry_open(path, &reg, &err);
    if (r < 0)
        fail_msg("%s", err.text);
}

SOME void stop(void)
{
    registry_close(reg);
    reg = NULL;
}

/* A generator of our own, so that a failure can be told by its seed. */
SOME uint64_t seed;

SOME uint64_t any(uint64_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % below;
}

SOME const char *beside(const char *suffix)
{
    static char name[128];
    snprintf(name, sizeof(name), "%s%s", path, suffix);
    return name;
}

SOME void slurp(const char *name, struct buf *b)
{
    buf_init(b, 4u << 20);
    own_fd fd = open(name, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(fd_read_all(fd, b, NULL), 0);
}

SOME void spill(const char *name, const void *p, size_t n)
{
    own_fd fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0 && fd_write_full(fd, p, n));
}

/* Runs SQL on the file, as somebody else would. */
SOME void meddle(const char *sql)
{
    sqlite3 *db = NULL;
    char *text = NULL;
    (void)mkdir(top, 0700);
    (void)sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
    if (sqlite3_exec(db, sql, NULL, NULL, &text) != SQLITE_OK)
        fail_msg("%s: %s", sql, text);
    sqlite3_close(db);
    assert_int_equal(chmod(path, 0600), 0);
}

SOME void make_folder(void)
{
    char dir[96];
    snprintf(dir, sizeof(dir), "%s/pale", top);
    assert_true(mkdir(dir, 0700) == 0 || errno == EEXIST);
}

/* Opening fails with the code and with the word in its text, and leaves file and folder as they were. */
SOME void refused_untouched(enum pale_code code, const char *word)
{
    own_buf before = {0}, after = {0};
    bool had_wal = access(beside("-wal"), F_OK) == 0;
    slurp(path, &before);
    assert_int_equal(registry_open(path, &reg, &err), -(int)code);
    slurp(path, &after);
    assert_int_equal(before.len, after.len);
    assert_memory_equal(buf_text(&before), buf_text(&after), before.len);
    assert_int_equal(access(beside("-wal"), F_OK) == 0, had_wal);
    if (!had_wal)
        assert_int_not_equal(access(beside("-shm"), F_OK), 0);
    assert_non_null(strstr(err.text, path));
    if (!strstr(err.text, word))
        fail_msg("%s", err.text);
}

/* --- rows --- */

SOME struct registry_box a_box(const char *tenant, const char *name, const char *key)
{
    struct registry_box b = {tenant, name, key, .made_unix_ms = NOW, .expires_unix_ms = NOW + DAY, .idle_ms = 60000};
    memset(b.asked, 0xa5, sizeof(b.asked));
    return b;
}

SOME void put(const char *tenant, const char *name, const char *key)
{
    struct registry_box b = a_box(tenant, name, key);
    if (registry_box_put(reg, &b, &err) < 0)
        fail_msg("%s", err.text);
}

SOME void same_box(const struct registry_box *a, const struct registry_box *b)
{
    assert_string_equal(a->tenant, b->tenant);
    assert_string_equal(a->name, b->name);
    assert_string_equal(a->key, b->key);
    assert_memory_equal(a->asked, b->asked, sizeof(a->asked));
    assert_int_equal(a->made_unix_ms, b->made_unix_ms);
    assert_int_equal(a->expires_unix_ms, b->expires_unix_ms);
    assert_int_equal(a->idle_ms, b->idle_ms);
}

SOME int count_box(const struct registry_box *b, void *arg, struct pale_err *e)
{
    (void)b, (void)e;
    ++*(int *)arg;
    return 0;
}

SOME int boxes(void)
{
    int n = 0;
    if (registry_box_each(reg, count_box, &n, &err) < 0)
        fail_msg("%s", err.text);
    return n;
}

SOME struct registry_token a_token(unsigned n)
{
    struct registry_token t = {.name = "ci", .scope = REGISTRY_SCOPE_TENANT, .tenant = "acme", .rights = UINT64_MAX, .made_unix_ms = NOW};
    snprintf(t.id, sizeof(t.id), "%016x", n);
    return t;
}

SOME void hash_of(unsigned n, uint8_t ret[SHA256_BYTES])
{
    struct sha256 h;
    sha256_init(&h);
    sha256_add(&h, &n, sizeof(n));
    sha256_final(&h, ret);
}

SOME int add(const struct registry_token *t, unsigned n)
{
    uint8_t hash[SHA256_BYTES];
    hash_of(n, hash);
    return registry_token_add(reg, t, hash, &err);
}

SOME void add_good(unsigned n)
{
    struct registry_token t = a_token(n);
    if (add(&t, n) < 0)
        fail_msg("%s", err.text);
}

SOME int count_token(const struct registry_token *t, void *arg, struct pale_err *e)
{
    (void)t, (void)e;
    ++*(int *)arg;
    return 0;
}

SOME int tokens(void)
{
    int n = 0;
    if (registry_token_each(reg, count_token, &n, &err) < 0)
        fail_msg("%s", err.text);
    return n;
}

SOME void fill(unsigned n)
{
    char name[32], key[32];
    start();
    for (unsigned i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "box-%03u", i);
        snprintf(key, sizeof(key), "key-%u", i);
        put(i % 2 ? "acme" : "", name, key);
        add_good(i);
    }
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, fresh, clean)
