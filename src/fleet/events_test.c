/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for fleet/events. */
#include "base/test.h"

#include <stdio.h>
#include <string.h>

#include "fleet/events.h"

struct ear {
    struct listener listener;
    uint64_t last;
    unsigned heard;
};

static void hear(struct listener *l, const struct event *ev)
{
    struct ear *e = (struct ear *)l;
    e->last = ev->number;
    e->heard++;
}

static void events_are_numbered_and_heard(void **state)
{
    (void)state;
    struct events e;
    struct ear ear = {.listener = {.heard = hear}};
    events_init(&e, 7);
    events_tell(&e, "box.made", "0123456789abcdef", "", "a", "");
    events_listen(&e, &ear.listener);
    events_tell(&e, "box.up", "0123456789abcdef", "", "a", "");
    events_unlisten(&e, &ear.listener);
    events_tell(&e, "box.down", "0123456789abcdef", "", "a", "");
    assert_int_equal(ear.heard, 1);
    assert_int_equal(ear.last, 2);
    events_done(&e);
}

static void who_comes_back_gets_what_came_after(void **state)
{
    (void)state;
    struct events e;
    bool missed;
    events_init(&e, 7);
    for (int i = 0; i < 40; i++)
        events_tell(&e, "box.up", "0123456789abcdef", "t", "a", "");
    uint64_t seen = 10;
    for (const struct event *ev; (ev = events_after(&e, seen, &missed)); seen = ev->number) {
        assert_int_equal(ev->number, seen + 1);
        assert_false(missed);
    }
    assert_int_equal(seen, 40);
    assert_null(events_after(&e, 40, &missed));
    events_done(&e);
}

static void what_is_no_longer_kept_is_told(void **state)
{
    (void)state;
    struct events e;
    bool missed;
    events_init(&e, 7);
    for (unsigned i = 0; i < EVENTS_KEPT + 100; i++)
        events_tell(&e, "box.up", "0123456789abcdef", "t", "a", "");
    const struct event *ev = events_after(&e, 5, &missed);
    assert_non_null(ev);
    assert_true(missed);
    assert_int_equal(ev->number, 101);
    ev = events_after(&e, 100, &missed);
    assert_false(missed);
    assert_int_equal(ev->number, 101);
    uint64_t seen = 100, n = 0;
    for (; (ev = events_after(&e, seen, &missed)); seen = ev->number)
        n++;
    assert_int_equal(n, EVENTS_KEPT);
    events_done(&e);
}

static void text_too_long_is_cut_and_says_so(void **state)
{
    (void)state;
    struct events e;
    bool missed;
    char fields[EVENT_BYTES_MAX + 50];
    memset(fields, 'x', sizeof(fields));
    memcpy(fields, ",\"a\":\"", 6);
    fields[sizeof(fields) - 2] = '"';
    fields[sizeof(fields) - 1] = 0;
    events_init(&e, 7);
    events_tell(&e, "job.started", "0123456789abcdef", "", "a", fields);
    assert_string_equal(events_after(&e, 0, &missed)->text, "{\"event\":\"job.started\",\"box\":\"0123456789abcdef\",\"cut\":true}");
    events_done(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_are_numbered_and_heard),
        cmocka_unit_test(who_comes_back_gets_what_came_after),
        cmocka_unit_test(what_is_no_longer_kept_is_told),
        cmocka_unit_test(text_too_long_is_cut_and_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
