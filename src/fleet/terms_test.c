/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for fleet/terms: rows of one life in the next. */
#include "fleet/core_host.h"

/* --- lives --- */

static void row_without_a_box_is_done_again_after_a_crash(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer a[4] = {0};
    host_create(h, "a", "k", 1, false, &a[0]);
    core_free(h->core);
    host_begin(h);
    assert_null(core_find(h->core, "", "a"));
    host_create(h, "a", "other", 1, false, &a[1]);
    host_expect(&a[1], PALE_BUSY);
    host_create(h, "a", "k", 1, false, &a[2]);
    assert_int_equal(h->last.d.kind, CORE_MAKE);
    host_done(h, PALE_EXISTS, true); /* by the deed of before */
    host_expect(&a[2], PALE_OK);
    host_create(h, "a", "k", 1, false, &a[3]);
    host_expect(&a[3], PALE_OK);
    host_free(h);
}

static void row_without_a_key_or_a_box_goes_when_the_doubt_is_over(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer a = {0};
    host_create(h, "a", "", 1, false, &a);
    host_create(h, "b", "k", 1, false, &a);
    core_free(h->core);
    host_begin(h);
    assert_int_equal(core_next_due(h->core), NOW + CORE_DOUBT_MS);
    h->now = NOW + CORE_DOUBT_MS;
    core_tick(h->core);
    assert_false(h->row_there['a']);
    assert_true(h->row_there['b']);
    assert_int_equal(core_next_due(h->core), NOW + CORE_KEY_KEEP_MS);
    host_free(h);
}

static void box_of_a_deed_of_before_gets_its_row(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer a = {0};
    host_create(h, "a", "", 1, false, &a);
    core_free(h->core);
    host_begin(h);
    h->born['a'] = ++h->births;
    struct core_sight s = host_sight(h, "a");
    assert_int_equal(core_seen(h->core, &s, NULL), 0);
    assert_true(core_find(h->core, "", "a")->has_terms);
    assert_int_equal(h->rows['a'].born, h->births);
    host_free(h);
}

static void box_made_by_somebody_else_inherits_no_terms(void **state)
{
    (void)state;
    struct host *h = host_new();
    host_have(h, "a", "k");
    core_free(h->core);
    h->born['a'] = ++h->births; /* removed and made again while no daemon was there */
    host_begin(h);
    assert_false(core_find(h->core, "", "a")->has_terms);
    assert_false(h->row_there['a']);
    host_free(h);
}

static void row_that_cannot_be_dropped_is_dropped_later(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer a = {0};
    host_have(h, "a", "");
    core_remove(h->core, host_id("a"), &a);
    h->no_rows = true;
    host_done(h, PALE_OK, true);
    host_expect(&a, PALE_OK);
    assert_int_equal(core_next_due(h->core), NOW + CORE_RETRY_MS);
    h->no_rows = false;
    h->now += CORE_RETRY_MS;
    core_tick(h->core);
    assert_false(h->row_there['a']);
    assert_int_equal(core_next_due(h->core), -1);
    host_free(h);
}

static int many_rows(void *arg, int (*fn)(void *, const char *, const char *, const struct core_terms *), void *fn_arg, struct pale_err *e)
{
    struct core_terms t = {.born = CORE_BORN_GONE};
    int r = 0;
    (void)arg;
    (void)e;
    for (unsigned i = 0; i < CORE_MEMORIES_MAX && r == 0; i++) {
        char name[16];
        snprintf(name, sizeof(name), "x%05u", i);
        snprintf(t.key, sizeof(t.key), "key%u", i);
        t.made_unix_ms = WALL - (i == 500);
        r = fn(fn_arg, "", name, &t);
    }
    return r;
}

static void memories_of_keys_are_bounded_and_the_oldest_goes(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer a[3] = {0};
    core_free(h->core);
    h->io.each_terms = many_rows;
    host_begin(h);
    host_create(h, "a", "k", 1, false, &a[0]);
    assert_string_equal(h->events, "dpo");
    host_create(h, "b", "key499", 0, false, &a[1]);
    host_expect(&a[1], PALE_GONE);
    host_create(h, "b", "key500", 0, false, &a[2]);
    assert_int_equal(h->last.d.kind, CORE_MAKE);
    assert_string_equal(h->last.name, "b");
    host_free(h);
}

TESTS(cmocka_unit_test(row_without_a_box_is_done_again_after_a_crash),
      cmocka_unit_test(row_without_a_key_or_a_box_goes_when_the_doubt_is_over), cmocka_unit_test(box_of_a_deed_of_before_gets_its_row),
      cmocka_unit_test(box_made_by_somebody_else_inherits_no_terms), cmocka_unit_test(row_that_cannot_be_dropped_is_dropped_later),
      cmocka_unit_test(memories_of_keys_are_bounded_and_the_oldest_goes))
