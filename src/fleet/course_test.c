/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for fleet/course: one deed at a time, and what falls due. */
#include "fleet/core_host.h"

/* --- use, stop, remove, rename --- */

static void use_starts_a_box_once_for_all_who_wait(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer a[3] = {0};
    host_have(h, "a", "");
    core_use(h->core, host_id("a"), &a[0]);
    core_use(h->core, host_id("a"), &a[1]);
    assert_int_equal(core_find(h->core, "", "a")->state, CORE_STARTING);
    assert_int_equal(h->orders, 2);
    core_deed_done(h->core, h->last.d.number, PALE_OK, "", "");
    assert_int_equal(a[0].count, 0); /* until there is a link */
    core_up(h->core, host_id("a"), 0);
    core_use(h->core, host_id("a"), &a[2]);
    for (int i = 0; i < 3; i++)
        host_expect(&a[i], PALE_OK);
    assert_int_equal(h->orders, 2);
    host_free(h);
}

static void use_tells_of_a_box_that_ended_as_soon_as_it_began(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer a = {0};
    host_have(h, "a", "");
    core_use(h->core, host_id("a"), &a);
    core_deed_done(h->core, h->last.d.number, PALE_OK, "", "");
    core_down(h->core, host_id("a"));
    host_expect(&a, PALE_GONE);
    host_free(h);
}

static void use_of_a_box_that_is_being_stopped_starts_it_after_that(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer a[2] = {0};
    host_have_up(h, "a");
    core_stop(h->core, host_id("a"), &a[0]);
    core_use(h->core, host_id("a"), &a[1]);
    assert_int_equal(h->last.d.kind, CORE_STOP);
    assert_false(h->last.d.only_idle);
    host_done(h, PALE_OK, true);
    host_expect(&a[0], PALE_OK);
    assert_int_equal(h->last.d.kind, CORE_START);
    host_done(h, PALE_OK, true);
    host_expect(&a[1], PALE_OK);
    host_free(h);
}

static void use_of_a_box_that_is_being_removed_finds_none(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer a[2] = {0};
    host_have(h, "a", "");
    core_remove(h->core, host_id("a"), &a[0]);
    core_use(h->core, host_id("a"), &a[1]);
    host_expect(&a[1], PALE_NOT_FOUND);
    host_done(h, PALE_OS, false);
    host_expect(&a[0], PALE_OS);
    assert_non_null(core_find(h->core, "", "a"));
    host_free(h);
}

static void stop_is_no_deed_if_the_box_is_down(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer a = {0};
    host_have(h, "a", "");
    core_stop(h->core, host_id("a"), &a);
    host_expect(&a, PALE_OK);
    assert_int_equal(h->orders, 1);
    host_free(h);
}

static void remove_does_not_touch_a_box_that_took_the_place(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer a[2] = {0};
    host_have_up(h, "a");
    core_stop(h->core, host_id("a"), &a[0]);
    core_remove(h->core, host_id("a"), &a[1]);
    h->born['a'] = ++h->births;
    struct core_sight s = host_sight(h, "a");
    assert_int_equal(core_seen(h->core, &s, NULL), 0);
    host_done(h, PALE_NOT_FOUND, false);
    core_down(h->core, host_id("a"));
    host_expect(&a[1], PALE_OK);
    assert_int_equal(h->last.d.kind, CORE_STOP);
    assert_int_equal(core_find(h->core, "", "a")->born, h->born['a']);
    assert_false(core_find(h->core, "", "a")->has_terms);
    host_free(h);
}

static void rename_needs_a_box_that_is_down_and_takes_the_row_along(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer a[4] = {0};
    host_have_up(h, "a");
    host_have(h, "c", "");
    core_rename(h->core, host_id("a"), "b", &a[0]);
    host_expect(&a[0], PALE_CONFLICT);
    core_down(h->core, host_id("a"));
    core_rename(h->core, host_id("a"), "c", &a[1]);
    host_expect(&a[1], PALE_EXISTS);
    core_rename(h->core, host_id("a"), "b", &a[2]);
    assert_true(h->row_there['a'] && h->row_there['b']); /* whatever happens now, one of them is right */
    core_use(h->core, host_id("a"), &a[3]);
    host_done(h, PALE_OK, true);
    host_expect(&a[2], PALE_OK);
    assert_string_equal(a[2].id, host_id("b"));
    assert_false(h->row_there['a']);
    assert_int_equal(h->rows['b'].asked[0], 1);
    assert_int_equal(h->last.d.kind, CORE_START); /* who waited for the box has followed it */
    assert_string_equal(h->last.name, "b");
    host_free(h);
}

static void requests_are_bounded_per_box(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer a[CORE_WAITERS_MAX + 1] = {0};
    host_have(h, "a", "");
    for (size_t i = 0; i <= CORE_WAITERS_MAX; i++)
        core_use(h->core, host_id("a"), &a[i]);
    host_expect(&a[CORE_WAITERS_MAX], PALE_LIMIT);
    host_done(h, PALE_DENIED, false);
    for (size_t i = 0; i < CORE_WAITERS_MAX; i++)
        host_expect(&a[i], PALE_DENIED);
    host_free(h);
}

static void answers_may_ask_for_more(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer second = {0}, first = {.then_use = host_id("a"), .then = &second};
    host_create(h, "a", "", 1, false, &first);
    host_done(h, PALE_OK, true);
    host_expect(&first, PALE_OK);
    assert_int_equal(h->last.d.kind, CORE_START);
    host_done(h, PALE_OK, true);
    host_expect(&second, PALE_OK);
    host_free(h);
}

static void core_that_ends_answers_who_waits(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer a = {0};
    host_have(h, "a", "");
    core_use(h->core, host_id("a"), &a);
    host_free(h);
    host_expect(&a, PALE_GONE);
}

/* --- time --- */

static void expired_box_is_removed_at_its_time_whatever_runs(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer a[2] = {0};
    host_have_up(h, "a");
    core_jobs(h->core, host_id("a"), 1);
    core_set_terms(h->core, host_id("a"), WALL + 5000, 0, &a[0]);
    host_expect(&a[0], PALE_OK);
    assert_int_equal(core_next_due(h->core), NOW + 5000);
    h->now = NOW + 4999;
    core_tick(h->core);
    assert_int_equal(h->orders, 2);
    h->now = NOW + 5000;
    core_tick(h->core);
    assert_int_equal(h->last.d.kind, CORE_REMOVE);
    assert_int_equal(core_next_due(h->core), -1);
    host_done(h, PALE_OS, false);
    core_use(h->core, host_id("a"), &a[1]);
    host_expect(&a[1], PALE_NOT_FOUND);
    assert_int_equal(core_next_due(h->core), h->now + CORE_RETRY_MS);
    h->now += CORE_RETRY_MS;
    core_tick(h->core);
    host_done(h, PALE_OS, false);
    assert_int_equal(core_next_due(h->core), h->now + 2 * CORE_RETRY_MS);
    for (int i = 0; i < 20; i++) {
        h->now = core_next_due(h->core);
        core_tick(h->core);
        host_done(h, PALE_OS, false);
    }
    assert_int_equal(core_next_due(h->core), h->now + CORE_RETRY_MAX_MS);
    h->now = core_next_due(h->core);
    core_tick(h->core);
    host_done(h, PALE_OK, true);
    assert_null(core_find(h->core, "", "a"));
    assert_false(h->row_there['a']);
    assert_int_equal(core_next_due(h->core), -1);
    host_free(h);
}

static void expiry_follows_the_wall_clock(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer a = {0};
    host_have(h, "a", "");
    core_set_terms(h->core, host_id("a"), WALL + 50000, 0, &a);
    h->wall += 60000;
    assert_int_equal(core_next_due(h->core), h->now);
    core_tick(h->core);
    assert_int_equal(h->last.d.kind, CORE_REMOVE);
    host_free(h);
}

static void idle_box_is_stopped_when_no_job_ran_for_long_enough(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer a[2] = {0};
    host_have_up(h, "a");
    core_set_terms(h->core, host_id("a"), 0, 1000, &a[0]);
    assert_int_equal(core_next_due(h->core), NOW + 1000);
    h->now = NOW + 500;
    core_jobs(h->core, host_id("a"), 1);
    assert_int_equal(core_next_due(h->core), -1);
    h->now = NOW + 5000;
    core_jobs(h->core, host_id("a"), 0);
    h->now = NOW + 5500;
    core_used(h->core, host_id("a"));
    assert_int_equal(core_next_due(h->core), NOW + 6500);
    h->now = NOW + 6500;
    core_tick(h->core);
    assert_int_equal(h->last.d.kind, CORE_STOP);
    assert_true(h->last.d.only_idle);
    core_use(h->core, host_id("a"), &a[1]);
    host_done(h, PALE_BUSY, false); /* a job has begun, of which we have not heard yet */
    host_expect(&a[1], PALE_OK);
    assert_int_equal(core_find(h->core, "", "a")->state, CORE_UP);
    assert_int_equal(core_next_due(h->core), h->now + 1000);
    host_free(h);
}

/* --- changes of layers --- */

/* The same host with a core that has other bounds. */
static struct host *host_with(size_t boxes_max, int64_t save_after_ms)
{
    struct host *h = host_new();
    core_free(h->core);
    h->io.boxes_max = boxes_max;
    h->io.save_after_ms = save_after_ms;
    host_begin(h);
    core_alone(h->core);
    return h;
}

static void change_tells_what_it_did_and_the_box_counts_as_up_all_the_time(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer a[3] = {0};
    int what = 0;
    host_have_up(h, "a");
    core_change(h->core, host_id("a"), &what, 0, &a[0]);
    assert_int_equal(h->last.d.kind, CORE_CHANGE);
    assert_ptr_equal(h->last.d.payload, &what);
    core_down(h->core, host_id("a"));
    core_use(h->core, host_id("a"), &a[1]); /* waits, and starts nothing */
    core_await(h->core, host_id("a"), &a[2]);
    assert_int_equal(core_find(h->core, "", "a")->state, CORE_UP);
    assert_true(core_find(h->core, "", "a")->changing);
    int orders = h->orders;
    host_done(h, PALE_OK, false);
    host_expect(&a[0], PALE_OK);
    assert_string_equal(a[0].told, "as told");
    assert_int_equal(a[1].count, 0); /* until it is known how the box stands */
    core_up(h->core, host_id("a"), 0);
    host_expect(&a[1], PALE_OK);
    host_expect(&a[2], PALE_OK);
    assert_string_equal(a[1].told, "");
    assert_int_equal(h->orders, orders);
    assert_false(core_find(h->core, "", "a")->changing);
    host_free(h);
}

static void change_after_which_the_box_is_down_starts_it_for_who_waits(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer a[2] = {0};
    host_have_up(h, "a");
    core_change(h->core, host_id("a"), NULL, 0, &a[0]);
    core_use(h->core, host_id("a"), &a[1]);
    host_done(h, PALE_OS, false);
    host_expect(&a[0], PALE_OS);
    assert_string_equal(a[0].told, "");
    core_down(h->core, host_id("a"));
    assert_int_equal(h->last.d.kind, CORE_START);
    host_done(h, PALE_OK, true);
    host_expect(&a[1], PALE_OK);
    host_free(h);
}

static void change_that_makes_more_boxes_than_may_be_is_refused(void **state)
{
    (void)state;
    struct host *h = host_with(4, 0);
    struct answer a[4] = {0};
    host_have(h, "a", "");
    host_have(h, "b", "");
    int orders = h->orders;
    core_change(h->core, host_id("a"), NULL, 3, &a[0]);
    host_expect(&a[0], PALE_LIMIT);
    assert_int_equal(h->orders, orders);
    core_change(h->core, host_id("a"), NULL, 2, &a[1]);
    assert_int_equal(h->orders, orders + 1);
    core_change(h->core, host_id("b"), NULL, 1, &a[2]); /* those that are being made count already */
    host_expect(&a[2], PALE_LIMIT);
    core_change(h->core, host_id("b"), NULL, 0, &a[3]);
    assert_int_equal(h->orders, orders + 2);
    host_free(h);
}

static void idle_box_is_kept_once_and_is_as_quiet_as_before(void **state)
{
    (void)state;
    struct host *h = host_with(0, 1000);
    struct answer a = {0};
    host_have_up(h, "a");
    core_set_terms(h->core, host_id("a"), 0, 5000, &a);
    assert_int_equal(core_next_due(h->core), NOW + 1000);
    h->now = NOW + 1000;
    core_tick(h->core);
    assert_int_equal(h->last.d.kind, CORE_CHANGE);
    assert_null(h->last.d.payload);
    assert_null(h->last.d.waiter);
    core_down(h->core, host_id("a"));
    host_done(h, PALE_OK, false);
    h->now = NOW + 1100;
    core_up(h->core, host_id("a"), 0);
    assert_int_equal(core_next_due(h->core), NOW + 5000); /* its stop, not another of these */
    core_jobs(h->core, host_id("a"), 1);
    h->now = NOW + 1200;
    core_jobs(h->core, host_id("a"), 0);
    assert_int_equal(core_next_due(h->core), NOW + 2200);
    core_frozen(h->core, host_id("a"), true); /* as it is somebody wants it */
    int orders = h->orders;
    h->now = NOW + 2200;
    core_tick(h->core);
    assert_int_equal(h->orders, orders);
    assert_int_equal(core_next_due(h->core), NOW + 6200);
    host_free(h);
}

TESTS(cmocka_unit_test(use_starts_a_box_once_for_all_who_wait), cmocka_unit_test(use_tells_of_a_box_that_ended_as_soon_as_it_began),
      cmocka_unit_test(use_of_a_box_that_is_being_stopped_starts_it_after_that),
      cmocka_unit_test(use_of_a_box_that_is_being_removed_finds_none), cmocka_unit_test(stop_is_no_deed_if_the_box_is_down),
      cmocka_unit_test(remove_does_not_touch_a_box_that_took_the_place),
      cmocka_unit_test(rename_needs_a_box_that_is_down_and_takes_the_row_along), cmocka_unit_test(requests_are_bounded_per_box),
      cmocka_unit_test(answers_may_ask_for_more), cmocka_unit_test(core_that_ends_answers_who_waits),
      cmocka_unit_test(expired_box_is_removed_at_its_time_whatever_runs), cmocka_unit_test(expiry_follows_the_wall_clock),
      cmocka_unit_test(idle_box_is_stopped_when_no_job_ran_for_long_enough),
      cmocka_unit_test(change_tells_what_it_did_and_the_box_counts_as_up_all_the_time),
      cmocka_unit_test(change_after_which_the_box_is_down_starts_it_for_who_waits),
      cmocka_unit_test(change_that_makes_more_boxes_than_may_be_is_refused),
      cmocka_unit_test(idle_box_is_kept_once_and_is_as_quiet_as_before))
