/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for fleet/core: making boxes, finding them, and who must wait. */
#include "fleet/core_host.h"

/* --- making --- */

static void create_puts_the_row_before_the_deed_is_ordered(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer a = {0};
    host_create(h, "a", "k", 1, false, &a);
    assert_string_equal(h->events, "po");
    assert_int_equal(a.count, 0);
    assert_int_equal(core_find(h->core, "", "a")->state, CORE_MAKING);
    host_done(h, PALE_OK, true);
    host_expect(&a, PALE_OK);
    assert_string_equal(a.id, host_id("a"));
    assert_int_equal(a.state, CORE_DOWN);
    assert_int_equal(h->rows['a'].born, h->born['a']);
    host_free(h);
}

static void create_changes_nothing_if_the_row_cannot_be_put(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer a = {0};
    h->no_rows = true;
    host_create(h, "a", "k", 1, false, &a);
    host_expect(&a, PALE_OS);
    assert_int_equal(h->orders, 0);
    assert_null(core_find(h->core, "", "a"));
    assert_int_equal(core_next_due(h->core), -1);
    host_free(h);
}

static void create_with_a_known_key_means_the_same_box(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer a[4] = {0};
    host_create(h, "a", "k", 1, false, &a[0]);
    host_create(h, "a", "k", 1, false, &a[1]);
    host_create(h, "a", "k", 2, false, &a[2]);
    host_expect(&a[2], PALE_BAD_INPUT);
    assert_non_null(strstr(a[2].text, "used for another request"));
    host_done(h, PALE_OK, true);
    host_create(h, "a", "k", 1, false, &a[3]);
    host_expect(&a[0], PALE_OK);
    host_expect(&a[1], PALE_OK);
    host_expect(&a[3], PALE_OK);
    assert_int_equal(h->orders, 1);
    host_free(h);
}

static void create_follows_its_key_to_a_box_that_was_renamed(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer a[2] = {0};
    host_have(h, "a", "k");
    core_rename(h->core, host_id("a"), "b", &a[0]);
    host_done(h, PALE_OK, true);
    host_expect(&a[0], PALE_OK);
    host_create(h, "a", "k", 1, false, &a[1]);
    host_expect(&a[1], PALE_OK);
    assert_string_equal(a[1].name, "b");
    host_free(h);
}

static void create_refuses_a_name_that_is_taken_unless_the_same_was_asked_with_ensure(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer a[3] = {0};
    host_have(h, "a", "");
    host_create(h, "a", "", 1, false, &a[0]);
    host_create(h, "a", "", 2, true, &a[1]);
    host_create(h, "a", "", 1, true, &a[2]);
    host_expect(&a[0], PALE_EXISTS);
    host_expect(&a[1], PALE_EXISTS);
    host_expect(&a[2], PALE_OK);
    host_free(h);
}

static void create_that_fails_leaves_no_row(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer a = {0};
    host_create(h, "a", "k", 1, false, &a);
    host_done(h, PALE_DENIED, false);
    host_expect(&a, PALE_DENIED);
    assert_string_equal(a.text, "as told");
    assert_false(h->row_there['a']);
    assert_null(core_find(h->core, "", "a"));
    host_free(h);
}

static void create_that_ends_doubtfully_looks_at_the_disk(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer a[4] = {0};
    host_create(h, "a", "", 1, false, &a[0]);
    host_done(h, PALE_GONE, true);
    host_expect(&a[0], PALE_OK);
    host_create(h, "b", "k", 1, false, &a[1]);
    host_done(h, PALE_TIMEOUT, false);
    host_expect(&a[1], PALE_TIMEOUT);
    assert_true(h->row_there['b']); /* it may come yet */
    host_create(h, "b", "", 2, false, &a[2]);
    host_expect(&a[2], PALE_BUSY);
    host_create(h, "b", "k", 1, false, &a[3]);
    host_done(h, PALE_EXISTS, true);
    host_expect(&a[3], PALE_OK);
    host_free(h);
}

static void create_waits_for_the_removal_of_its_namesake(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer a[3] = {0};
    host_have(h, "a", "");
    core_remove(h->core, host_id("a"), &a[0]);
    host_create(h, "a", "", 2, false, &a[1]);
    core_remove(h->core, host_id("a"), &a[2]); /* of the first */
    host_done(h, PALE_OK, true);
    host_expect(&a[0], PALE_OK);
    host_expect(&a[2], PALE_OK);
    assert_int_equal(h->last.d.kind, CORE_MAKE);
    host_done(h, PALE_OK, true);
    host_expect(&a[1], PALE_OK);
    host_free(h);
}

static void create_again_with_the_key_of_a_removed_box_says_so_for_a_day(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer a[3] = {0};
    host_have(h, "a", "k");
    core_remove(h->core, host_id("a"), &a[0]);
    host_done(h, PALE_OK, true);
    host_expect(&a[0], PALE_OK);
    assert_null(core_find(h->core, "", "a"));
    host_create(h, "a", "k", 1, false, &a[1]);
    host_expect(&a[1], PALE_GONE);
    h->now = core_next_due(h->core);
    assert_int_equal(h->now, NOW + CORE_KEY_KEEP_MS);
    core_tick(h->core);
    assert_false(h->row_there['a']);
    host_create(h, "a", "k", 1, false, &a[2]);
    assert_int_equal(h->last.d.kind, CORE_MAKE);
    host_free(h);
}

static void create_is_bounded_in_all_and_per_tenant(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer a[2] = {0};
    core_free(h->core);
    h->io.tenant_boxes_max = 1;
    host_begin(h);
    host_have(h, "a", "");
    host_create(h, "b", "", 1, false, &a[0]);
    host_expect(&a[0], PALE_LIMIT);
    uint8_t asked[SHA256_BYTES] = {1};
    struct core_order o = {.tenant = "acme", .name = "c", .key = "", .asked = asked};
    core_create(h->core, &o, &a[1]);
    assert_int_equal(a[1].count, 0);
    host_free(h);
}

static void requests_before_the_core_is_settled_are_to_come_again(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer a = {0};
    core_free(h->core);
    h->core = core_new(&h->io);
    host_create(h, "a", "", 1, false, &a);
    host_expect(&a, PALE_BUSY);
    host_free(h);
}

/* --- many --- */

static void core_finds_and_lists_thousands_in_order(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct core_sight s = {.born = 1};
    for (unsigned i = 0; i < 10000; i++) {
        unsigned n = i * 7919 % 10000;
        snprintf(s.tenant, sizeof(s.tenant), "%s", n % 3 ? "acme" : "");
        snprintf(s.name, sizeof(s.name), "%s%05u", n % 10 ? "box" : "same", n % 10 ? n : 0);
        snprintf(s.id, sizeof(s.id), "%016x", n);
        s.project = n % 10 == 0;
        assert_int_equal(core_seen(h->core, &s, NULL), 0);
    }
    assert_string_equal(core_find(h->core, "acme", "box04321")->id, "00000000000010e1");
    assert_string_equal(core_find(h->core, "acme", "00000000000010e1")->name, "box04321");
    assert_null(core_find(h->core, "", "box04321"));
    assert_null(core_find(h->core, "", "00000000000010e1")); /* another's */
    size_t n = 0;
    char last[200] = "";
    for (const struct core_box *b = core_after(h->core, "", "", ""); b; b = core_after(h->core, b->tenant, b->name, b->id)) {
        char at[200];
        snprintf(at, sizeof(at), "%s/%s/%s", b->tenant, b->name, b->id);
        assert_true(strcmp(last, at) < 0);
        memcpy(last, at, sizeof(at));
        n++;
    }
    assert_int_equal(n, 10000);
    host_free(h);
}

TESTS(cmocka_unit_test(create_puts_the_row_before_the_deed_is_ordered), cmocka_unit_test(create_changes_nothing_if_the_row_cannot_be_put),
      cmocka_unit_test(create_with_a_known_key_means_the_same_box), cmocka_unit_test(create_follows_its_key_to_a_box_that_was_renamed),
      cmocka_unit_test(create_refuses_a_name_that_is_taken_unless_the_same_was_asked_with_ensure),
      cmocka_unit_test(create_that_fails_leaves_no_row), cmocka_unit_test(create_that_ends_doubtfully_looks_at_the_disk),
      cmocka_unit_test(create_waits_for_the_removal_of_its_namesake),
      cmocka_unit_test(create_again_with_the_key_of_a_removed_box_says_so_for_a_day),
      cmocka_unit_test(create_is_bounded_in_all_and_per_tenant), cmocka_unit_test(requests_before_the_core_is_settled_are_to_come_again),
      cmocka_unit_test(core_finds_and_lists_thousands_in_order))
