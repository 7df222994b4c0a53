/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for store/registry: what is remembered, and which rows are refused. */
#include "store/store_test.h"

#include <sys/syscall.h>

/* --- boxes --- */

static void box_that_was_put_is_found_by_name_and_by_key(void **state)
{
    own_mem struct registry_box *by_name = NULL, *by_key = NULL;
    struct registry_box b = a_box("acme", "web", "k-1");
    (void)state;
    start();
    assert_int_equal(registry_box_put(reg, &b, &err), 0);
    stop();
    start();
    assert_int_equal(registry_box_find(reg, "acme", "web", &by_name, &err), 0);
    assert_int_equal(registry_box_find_key(reg, "acme", "k-1", &by_key, &err), 0);
    same_box(by_name, &b);
    same_box(by_key, &b);
}

static void box_is_found_only_by_its_own_tenant(void **state)
{
    own_mem struct registry_box *b = NULL;
    (void)state;
    start();
    put("", "web", "k");
    put("acme", "web", "k");
    assert_int_equal(registry_box_find(reg, "other", "web", &b, &err), -PALE_NOT_FOUND);
    assert_int_equal(registry_box_find_key(reg, "other", "k", &b, &err), -PALE_NOT_FOUND);
    assert_int_equal(registry_box_find(reg, "", "web", &b, &err), 0);
    assert_string_equal(b->tenant, "");
    assert_int_equal(boxes(), 2);
}

static void put_replaces_the_terms_of_a_box(void **state)
{
    own_mem struct registry_box *found = NULL, *old = NULL;
    struct registry_box b = a_box("", "web", "k-1");
    (void)state;
    start();
    assert_int_equal(registry_box_put(reg, &b, &err), 0);
    b.key = "k-2";
    b.expires_unix_ms = 0;
    b.asked[0] = 1;
    assert_int_equal(registry_box_put(reg, &b, &err), 0);
    assert_int_equal(registry_box_find(reg, "", "web", &found, &err), 0);
    same_box(found, &b);
    assert_int_equal(registry_box_find_key(reg, "", "k-1", &old, &err), -PALE_NOT_FOUND);
    assert_int_equal(boxes(), 1);
}

static void no_box_is_found_by_the_empty_key(void **state)
{
    own_mem struct registry_box *b = NULL;
    (void)state;
    start();
    put("", "web", "");
    assert_int_equal(registry_box_find_key(reg, "", "", &b, &err), -PALE_NOT_FOUND);
}

static void dropped_box_is_gone_and_dropping_again_is_told(void **state)
{
    (void)state;
    start();
    put("", "web", "k");
    assert_int_equal(registry_box_drop(reg, "", "web", &err), 0);
    assert_int_equal(registry_box_drop(reg, "", "web", &err), -PALE_NOT_FOUND);
    assert_non_null(strstr(err.text, "web"));
    put("", "web2", "k");
}

static void put_refuses_what_is_out_of_bounds(void **state)
{
    char name[BOX_NAME_MAX + 2], key[REQUEST_KEY_MAX + 2];
    (void)state;
    memset(name, 'a', sizeof(name));
    memset(key, 'k', sizeof(key));
    name[sizeof(name) - 1] = key[sizeof(key) - 1] = 0;
    start();
    struct registry_box bad[] = {
        a_box("", name, ""),      a_box("", "", ""),          a_box("", "../x", ""),         a_box(name, "x", ""),
        a_box("Acme", "x", ""),   a_box("", "x", key),        a_box("", "x", "a\nb"),        a_box("", "x", "\xff"),
        a_box("", "x", "\u202e"), a_box("", "time-made", ""), a_box("", "time-expires", ""), a_box("", "time-idle", ""),
    };
    bad[9].made_unix_ms = -1;
    bad[10].expires_unix_ms = INT64_MAX;
    bad[11].idle_ms = INT64_MIN;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(registry_box_put(reg, &bad[i], &err), -PALE_BAD_INPUT);
    assert_int_equal(boxes(), 0);
    put(name + 1, name + 1, key + 1);
    put("", name + 1, "\u00e9\u00df \u6f22");
    assert_int_equal(boxes(), 2);
}

static void finders_take_text_of_any_length(void **state)
{
    own_mem char *text = malloc(100001);
    own_mem struct registry_box *b = NULL;
    own_mem struct registry_token *t = NULL;
    (void)state;
    assert_non_null(text);
    memset(text, 'a', 100000);
    text[100000] = 0;
    start();
    assert_int_equal(registry_box_find(reg, "", text, &b, &err), -PALE_BAD_INPUT);
    assert_int_equal(registry_box_find_key(reg, text, "x", &b, &err), -PALE_BAD_INPUT);
    assert_int_equal(registry_box_drop(reg, text, "x", &err), -PALE_BAD_INPUT);
    assert_int_equal(registry_token_find(reg, text, &t, &err), -PALE_BAD_INPUT);
    assert_int_equal(registry_token_revoke(reg, text, NOW, &err), -PALE_BAD_INPUT);
    assert_int_equal(registry_box_find(reg, "", "\x1b[2J'; DROP TABLE boxes; --", &b, &err), -PALE_NOT_FOUND);
    assert_null(strchr(err.text, 0x1b));
}

struct seen {
    int count;
    char last[2 * BOX_NAME_MAX];
};

static int drop_each(const struct registry_box *b, void *arg, struct pale_err *e)
{
    struct seen *s = arg;
    char now[2 * BOX_NAME_MAX];
    snprintf(now, sizeof(now), "%s/%s", b->tenant, b->name);
    if (strcmp(s->last, now) >= 0)
        return err_set(e, PALE_INTERNAL, "%s after %s", now, s->last);
    snprintf(s->last, sizeof(s->last), "%s", now);
    s->count++;
    return registry_box_drop(reg, b->tenant, b->name, e);
}

static void each_goes_in_order_and_may_drop_what_it_sees(void **state)
{
    static const char *const tenants[] = {"", "acme", "b"};
    struct seen s = {0};
    char name[32];
    (void)state;
    start();
    for (unsigned i = 0; i < 60; i++) {
        snprintf(name, sizeof(name), "box-%u", i * 7 % 60);
        put(tenants[i % 3], name, "");
    }
    assert_int_equal(registry_box_each(reg, drop_each, &s, &err), 0);
    assert_int_equal(s.count, 60);
    assert_int_equal(boxes(), 0);
}

static int stop_at_third(const struct registry_box *b, void *arg, struct pale_err *e)
{
    (void)b;
    return ++*(int *)arg == 3 ? err_set(e, PALE_TIMEOUT, "enough") : 0;
}

static void each_ends_with_what_the_caller_returns(void **state)
{
    int n = 0;
    (void)state;
    start();
    put("", "a", "");
    put("", "b", "");
    put("", "c", "");
    put("", "d", "");
    assert_int_equal(registry_box_each(reg, stop_at_third, &n, &err), -PALE_TIMEOUT);
    assert_int_equal(n, 3);
}

static void there_are_at_most_so_many_boxes_and_tokens(void **state)
{
    struct registry_box b = a_box("", "one-more", "");
    struct registry_token t = a_token(UINT32_MAX);
    char sql[400];
    (void)state;
    start();
    stop();
    snprintf(sql, sizeof(sql),
             "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)"
             " INSERT INTO boxes SELECT '', 'b' || i, '', zeroblob(32), 1, 0, 0, 0 FROM n",
             REGISTRY_BOXES_MAX);
    meddle(sql);
    snprintf(sql, sizeof(sql),
             "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)"
             " INSERT INTO tokens SELECT randomblob(32), printf('%%016x', i), '', 3, '', '', 0, 1, 0, 0, 0, 0 FROM n",
             REGISTRY_TOKENS_MAX);
    meddle(sql);
    start();
    assert_int_equal(registry_box_put(reg, &b, &err), -PALE_LIMIT);
    b.name = "b7";
    assert_int_equal(registry_box_put(reg, &b, &err), 0);
    assert_int_equal(add(&t, 1), -PALE_LIMIT);
    assert_int_equal(registry_token_revoke(reg, "0000000000000001", NOW, &err), 0);
    assert_int_equal(registry_token_purge(reg, NOW + 2 * DAY, 1, NULL, &err), 0);
    assert_int_equal(add(&t, 1), 0);
}

/* --- tokens --- */

static void token_is_found_by_hash_and_by_id(void **state)
{
    struct registry_token in = a_token(7);
    uint8_t hash[SHA256_BYTES];
    (void)state;
    in.rights = 0x8000000000000001u;
    in.expires_unix_ms = NOW + DAY;
    snprintf(in.box, sizeof(in.box), "0123456789abcdef0123456789abcdef");
    in.scope = REGISTRY_SCOPE_BOX;
    start();
    assert_int_equal(add(&in, 7), 0);
    stop();
    start();
    for (int by_id = 0; by_id < 2; by_id++) {
        own_mem struct registry_token *t = NULL;
        hash_of(7, hash);
        assert_int_equal(by_id ? registry_token_find(reg, in.id, &t, &err) : registry_token_find_hash(reg, hash, &t, &err), 0);
        assert_string_equal(t->id, in.id);
        assert_string_equal(t->name, "ci");
        assert_int_equal(t->scope, REGISTRY_SCOPE_BOX);
        assert_string_equal(t->tenant, "acme");
        assert_string_equal(t->box, in.box);
        assert_true(t->rights == in.rights);
        assert_int_equal(t->made_unix_ms, NOW);
        assert_int_equal(t->expires_unix_ms, NOW + DAY);
        assert_int_equal(t->revoked_unix_ms, 0);
        assert_int_equal(t->last_used_unix_ms, 0);
    }
}

static void unknown_token_is_not_found(void **state)
{
    own_mem struct registry_token *t = NULL;
    uint8_t hash[SHA256_BYTES];
    (void)state;
    start();
    add_good(1);
    hash_of(2, hash);
    assert_int_equal(registry_token_find_hash(reg, hash, &t, &err), -PALE_NOT_FOUND);
    assert_int_equal(registry_token_find(reg, "0000000000000002", &t, &err), -PALE_NOT_FOUND);
    assert_int_equal(registry_token_revoke(reg, "0000000000000002", NOW, &err), -PALE_NOT_FOUND);
    assert_int_equal(registry_token_touch(reg, "0000000000000002", NOW, &err), -PALE_NOT_FOUND);
    assert_null(t);
}

static void add_refuses_an_id_or_a_hash_twice(void **state)
{
    struct registry_token same_id = a_token(1), same_hash = a_token(2);
    (void)state;
    start();
    add_good(1);
    assert_int_equal(add(&same_id, 2), -PALE_EXISTS);
    assert_int_equal(add(&same_hash, 1), -PALE_EXISTS);
    assert_int_equal(tokens(), 1);
    assert_int_equal(add(&same_hash, 2), 0);
}

static void add_refuses_what_breaks_the_rules_of_a_token(void **state)
{
    struct registry_token t[13];
    char name[TOKEN_NAME_MAX + 2];
    (void)state;
    memset(name, 'n', sizeof(name));
    name[sizeof(name) - 1] = 0;
    for (unsigned i = 0; i < 13; i++)
        t[i] = a_token(i);
    t[0].id[3] = 'A';
    t[1].id[15] = 0;
    t[2].name = name;
    t[3].name = "a\x1b";
    t[4].scope = 0;
    t[5].scope = 4;
    t[6].tenant = "";
    t[7].tenant = "a/b";
    t[8].scope = REGISTRY_SCOPE_OPERATOR;
    t[9].scope = REGISTRY_SCOPE_BOX;
    memcpy(t[10].box, "0123456789abcdef0123456789abcdef", 33);
    t[11].expires_unix_ms = -5;
    memset(t[12].id, '0', sizeof(t[12].id));
    start();
    for (unsigned i = 0; i < 13; i++)
        assert_int_equal(add(&t[i], i), -PALE_BAD_INPUT);
    assert_int_equal(tokens(), 0);
}

static void revoking_is_kept_at_its_first_time(void **state)
{
    own_mem struct registry_token *t = NULL;
    (void)state;
    start();
    add_good(1);
    assert_int_equal(registry_token_revoke(reg, "0000000000000001", 0, &err), -PALE_BAD_INPUT);
    assert_int_equal(registry_token_revoke(reg, "0000000000000001", NOW + 5, &err), 0);
    assert_int_equal(registry_token_revoke(reg, "0000000000000001", NOW + 9, &err), 0);
    assert_int_equal(registry_token_find(reg, "0000000000000001", &t, &err), 0);
    assert_int_equal(t->revoked_unix_ms, NOW + 5);
    assert_false(registry_token_is_good(t, NOW));
}

static void token_is_good_until_it_expires(void **state)
{
    struct registry_token t = a_token(1);
    (void)state;
    assert_true(registry_token_is_good(&t, INT64_MAX));
    t.expires_unix_ms = NOW;
    assert_true(registry_token_is_good(&t, NOW - 1));
    assert_false(registry_token_is_good(&t, NOW));
}

static void touch_keeps_the_latest_use(void **state)
{
    own_mem struct registry_token *t = NULL;
    (void)state;
    start();
    add_good(1);
    assert_int_equal(registry_token_touch(reg, "0000000000000001", NOW + 60000, &err), 0);
    assert_int_equal(registry_token_touch(reg, "0000000000000001", NOW, &err), 0);
    assert_int_equal(registry_token_find(reg, "0000000000000001", &t, &err), 0);
    assert_int_equal(t->last_used_unix_ms, NOW + 60000);
}

static void purge_forgets_what_ended_long_ago_and_nothing_else(void **state)
{
    struct registry_token expired = a_token(2), fresh_end = a_token(3), revoked = a_token(4);
    own_mem struct registry_token *t = NULL;
    uint64_t gone = 0;
    (void)state;
    expired.expires_unix_ms = NOW - 8 * DAY;
    fresh_end.expires_unix_ms = NOW - 6 * DAY;
    revoked.revoked_unix_ms = NOW - 7 * DAY - 1;
    start();
    add_good(1);
    assert_int_equal(add(&expired, 2), 0);
    assert_int_equal(add(&fresh_end, 3), 0);
    assert_int_equal(add(&revoked, 4), 0);
    assert_int_equal(registry_token_purge(reg, NOW, UINT32_MAX, &gone, &err), 0);
    assert_int_equal(gone, 0);
    assert_int_equal(registry_token_purge(reg, NOW, 7, &gone, &err), 0);
    assert_int_equal(gone, 2);
    assert_int_equal(tokens(), 2);
    assert_int_equal(registry_token_find(reg, "0000000000000003", &t, &err), 0);
}

static int revoke_each(const struct registry_token *t, void *arg, struct pale_err *e)
{
    ++*(int *)arg;
    return registry_token_revoke(reg, t->id, NOW, e);
}

static void each_token_may_be_revoked_on_the_way(void **state)
{
    int n = 0;
    (void)state;
    start();
    for (unsigned i = 0; i < 20; i++)
        add_good(i);
    assert_int_equal(registry_token_each(reg, revoke_each, &n, &err), 0);
    assert_int_equal(n, 20);
}

static void the_hash_is_all_that_is_stored_of_a_token(void **state)
{
    static const char text[] = "pale_0123456789abcdef0123456789abcdef";
    struct registry_token t = a_token(1);
    struct sha256 h;
    uint8_t hash[SHA256_BYTES];
    own_buf file = {0};
    (void)state;
    sha256_init(&h);
    sha256_add(&h, text, strlen(text));
    sha256_final(&h, hash);
    start();
    assert_int_equal(registry_token_add(reg, &t, hash, &err), 0);
    stop();
    slurp(path, &file);
    assert_null(memmem(file.data, file.len, text, strlen(text)));
    assert_non_null(memmem(file.data, file.len, hash, sizeof(hash)));
}

/* SQLite calls these of ours instead of libc's. */
static int syncs;

int fdatasync(int fd)
{
    syncs++;
    return (int)syscall(SYS_fdatasync, fd);
}

int fsync(int fd)
{
    syncs++;
    return (int)syscall(SYS_fsync, fd);
}

static void revoking_is_on_the_disk_and_a_put_need_not_be(void **state)
{
    (void)state;
    start();
    if (syncs == 0) {
        print_message("this SQLite calls libc's fdatasync, whatever we define\n");
        skip();
    }
    add_good(1);
    syncs = 0;
    put("", "web", "");
    assert_int_equal(syncs, 0);
    assert_int_equal(registry_token_revoke(reg, "0000000000000001", NOW, &err), 0);
    assert_true(syncs > 0);
    syncs = 0;
    put("", "web", "k");
    assert_int_equal(syncs, 0);
}

/* --- damage --- */

static void row_that_breaks_the_rules_is_corrupt(void **state)
{
    static const char *const bad[] = {
        "UPDATE boxes SET tenant = 'Not A Tenant'",
        "UPDATE boxes SET key = char(27)",
        "UPDATE boxes SET key = CAST(x'6b00' AS TEXT)",
        "UPDATE boxes SET key = CAST(x'ff' AS TEXT)",
        "UPDATE boxes SET key = printf('%.*c', 129, 'k')",
        "UPDATE boxes SET key = printf('%.*c', 40000, 'k')",
        "UPDATE boxes SET asked = zeroblob(31)",
        "UPDATE boxes SET asked = zeroblob(33)",
        "UPDATE boxes SET asked = x''",
        "UPDATE boxes SET made_ms = -1",
        "UPDATE boxes SET expires_ms = 9223372036854775807",
        "UPDATE boxes SET idle_ms = -9223372036854775808",
        "UPDATE tokens SET scope = 0",
        "UPDATE tokens SET scope = 4294967298",
        "UPDATE tokens SET scope = 3",
        "UPDATE tokens SET tenant = ''",
        "UPDATE tokens SET tenant = '..'",
        "UPDATE tokens SET name = printf('%.*c', 65, 'n')",
        "UPDATE tokens SET box = 'x'",
        "UPDATE tokens SET box = printf('%.*c', 300, 'a')",
        "UPDATE tokens SET id = 'ABCDEF0123456789'",
        "UPDATE tokens SET id = printf('%.*c', 300, 'a')",
        "UPDATE tokens SET revoked_ms = -1",
        "UPDATE tokens SET last_used_ms = 1e17",
    };
    own_buf good = {0};
    uint8_t hash[SHA256_BYTES];
    (void)state;
    fill(1);
    stop();
    slurp(path, &good);
    hash_of(0, hash);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        own_mem struct registry_token *t = NULL;
        int n = 0;
        spill(path, good.data, good.len);
        meddle(bad[i]);
        start();
        bool is_box = strstr(bad[i], "boxes") != NULL;
        int r = is_box ? registry_box_each(reg, count_box, &n, &err) : registry_token_find_hash(reg, hash, &t, &err);
        if (r != -PALE_CORRUPT)
            fail_msg("%s: %d", bad[i], r);
        assert_null(t);
        assert_int_equal(n, 0);
        stop();
    }
}

/* --- memory --- */

static void memory_stays_small(void **state)
{
    char name[32];
    (void)state;
    start();
    for (unsigned i = 0; i < 3000; i++) {
        snprintf(name, sizeof(name), "box-%u", i);
        put("acme", name, name);
    }
    assert_int_equal(boxes(), 3000);
    if (sqlite3_memory_used() > 640 * 1024)
        fail_msg("%d bytes", (int)sqlite3_memory_used());
}

TESTS(CASE(box_that_was_put_is_found_by_name_and_by_key), CASE(box_is_found_only_by_its_own_tenant), CASE(put_replaces_the_terms_of_a_box),
      CASE(no_box_is_found_by_the_empty_key), CASE(dropped_box_is_gone_and_dropping_again_is_told), CASE(put_refuses_what_is_out_of_bounds),
      CASE(finders_take_text_of_any_length), CASE(each_goes_in_order_and_may_drop_what_it_sees),
      CASE(each_ends_with_what_the_caller_returns), CASE(there_are_at_most_so_many_boxes_and_tokens),
      CASE(token_is_found_by_hash_and_by_id), CASE(unknown_token_is_not_found), CASE(add_refuses_an_id_or_a_hash_twice),
      CASE(add_refuses_what_breaks_the_rules_of_a_token), CASE(revoking_is_kept_at_its_first_time), CASE(token_is_good_until_it_expires),
      CASE(touch_keeps_the_latest_use), CASE(purge_forgets_what_ended_long_ago_and_nothing_else),
      CASE(each_token_may_be_revoked_on_the_way), CASE(the_hash_is_all_that_is_stored_of_a_token),
      CASE(revoking_is_on_the_disk_and_a_put_need_not_be), CASE(row_that_breaks_the_rules_is_corrupt), CASE(memory_stays_small))
