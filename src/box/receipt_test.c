/* SPDX-License-Identifier: Apache-2.0 */
/* Unit cases of receipts: one wrong answer is enough, and no other bytes are a report. */
#include "base/test.h"

#include "box/receipt.h"

#define OWN 4026532000u
#define HOST 4026531000u
#define INITS 4026533000u

static struct receipt_facts good_facts(bool full)
{
    struct receipt_facts f = {
        .uid = 1000, .processes = 512, .init_user_space = INITS, .full = full, .has_listeners = full, .has_planted = true};
    f.landlock_left = 16;
    f.scratch_bytes = 8 << 20;
    for (int i = 0; i < SPACE_COUNT; i++)
        f.host_space[i] = HOST;
    return f;
}

/* The answers of a box that holds. */
static struct probe_report good_report(bool full)
{
    struct probe_report r = {.took_us = 90};
    struct receipt_facts f = good_facts(full);
    /* The right answer is found by trying them: the table itself is what is under test elsewhere. */
    static const uint32_t values[] = {0, 1, 2, 15, 512, 1000, OWN, 2, 13, 38, 97, 101, 111, 11, 28, 30, PROBE_TOUCH_BYTES, 8192};
    for (int i = 0; i < PROBE_COUNT; i++)
        r.answer[i] = PROBE_NOT_TRIED;
    for (int i = 0; i < PROBE_COUNT; i++) {
        struct receipt before, after;
        assert_int_equal(receipt_judge(&f, &r, sizeof(r), &before, NULL), 0);
        if (before.bad == 0)
            break;
        size_t best = before.bad;
        uint32_t right = PROBE_NOT_TRIED;
        for (size_t v = 0; v < sizeof(values) / sizeof(values[0]) && best == before.bad; v++) {
            r.answer[i] = values[v];
            assert_int_equal(receipt_judge(&f, &r, sizeof(r), &after, NULL), 0);
            if (after.bad < best) {
                best = after.bad;
                right = values[v];
            }
        }
        r.answer[i] = right;
    }
    return r;
}

static void receipt_of_a_good_box_is_good(void **state)
{
    (void)state;
    for (int full = 0; full < 2; full++) {
        struct receipt_facts f = good_facts(full);
        struct probe_report r = good_report(full);
        struct receipt out;
        assert_int_equal(receipt_judge(&f, &r, sizeof(r), &out, NULL), 0);
        assert_int_equal(out.bad, 0);
        assert_true(full ? out.count == PROBE_COUNT : out.count < PROBE_COUNT);
        assert_int_equal(out.took_us, 90);
    }
}

static void receipt_finds_each_single_wrong_answer(void **state)
{
    (void)state;
    struct receipt_facts f = good_facts(true);
    for (int i = 0; i < PROBE_COUNT; i++) {
        /* Open, not tried, the host's, init's, something else. */
        static const uint32_t wrong[] = {0, PROBE_NOT_TRIED, HOST, 4095, 7};
        int caught = 0;
        for (size_t v = 0; v < sizeof(wrong) / sizeof(wrong[0]); v++) {
            struct probe_report r = good_report(true);
            struct receipt out;
            char text[400];
            if (r.answer[i] == wrong[v])
                continue;
            r.answer[i] = wrong[v];
            assert_int_equal(receipt_judge(&f, &r, sizeof(r), &out, NULL), 0);
            if (out.bad == 0)
                continue;
            caught++;
            assert_int_equal(out.bad, 1);
            receipt_complaint(&out, text, sizeof(text));
            for (size_t row = 0; row < out.count; row++)
                if (!out.row[row].good)
                    assert_non_null(strstr(text, out.row[row].defence));
        }
        assert_true(caught >= 3);
    }
}

static void receipt_finds_the_user_namespace_of_init(void **state)
{
    (void)state;
    struct receipt_facts f = good_facts(false);
    struct probe_report r = good_report(false);
    struct receipt out;
    char text[200];
    r.answer[PROBE_USER_SPACE] = INITS;
    assert_int_equal(receipt_judge(&f, &r, sizeof(r), &out, NULL), 0);
    receipt_complaint(&out, text, sizeof(text));
    assert_non_null(strstr(text, "the inner user namespace"));
    assert_non_null(strstr(text, "that of pale-init"));
}

static void receipt_takes_what_cannot_be_seen_for_a_doubt(void **state)
{
    (void)state;
    struct probe_report r = good_report(false);
    struct receipt out;
    for (int i = 0; i < SPACE_COUNT; i++) {
        struct receipt_facts f = good_facts(false);
        f.host_space[i] = 0;
        assert_int_equal(receipt_judge(&f, &r, sizeof(r), &out, NULL), 0);
        assert_int_equal(out.bad, 1);
    }
    struct receipt_facts f = good_facts(false);
    f.init_user_space = 0;
    assert_int_equal(receipt_judge(&f, &r, sizeof(r), &out, NULL), 0);
    assert_int_equal(out.bad, 1);
}

static void receipt_refuses_every_other_length(void **state)
{
    (void)state;
    struct receipt_facts f = good_facts(true);
    struct probe_report r[2] = {good_report(true), good_report(true)};
    struct receipt out;
    for (size_t n = 0; n <= sizeof(r); n++)
        if (n != sizeof(r[0]))
            assert_true(receipt_judge(&f, r, n, &out, NULL) < 0);
}

static void receipt_does_not_take_answers_to_questions_that_were_not_asked(void **state)
{
    (void)state;
    struct receipt_facts f = good_facts(false);
    struct probe_report r = good_report(false);
    struct receipt out;
    r.answer[PROBE_CHROOT] = 0;
    assert_int_equal(receipt_judge(&f, &r, sizeof(r), &out, NULL), 0);
    assert_int_equal(out.bad, 1);
}

static void receipt_has_the_lines_from_outside(void **state)
{
    (void)state;
    struct receipt_facts f = good_facts(false);
    struct probe_report r = good_report(false);
    struct receipt out;
    char text[200];
    receipt_outside(&f, "memory-limit", "the limit on memory (cgroup)", "4096", "4096");
    assert_int_equal(receipt_judge(&f, &r, sizeof(r), &out, NULL), 0);
    assert_int_equal(out.bad, 0);
    receipt_outside(&f, "cpu-share", "the limit on CPU share (cgroup)", "500", "none");
    assert_int_equal(receipt_judge(&f, &r, sizeof(r), &out, NULL), 0);
    assert_int_equal(out.bad, 1);
    receipt_complaint(&out, text, sizeof(text));
    assert_non_null(strstr(text, "CPU share"));
    for (int i = 0; i < 3 * RECEIPT_OUTSIDE_MAX; i++)
        receipt_outside(&f, "x", "y", "1", "1");
    assert_int_equal(f.outside_count, RECEIPT_OUTSIDE_MAX);
}

static void receipt_complaint_stays_within_its_room(void **state)
{
    (void)state;
    struct receipt_facts f = good_facts(true);
    struct probe_report r;
    struct receipt out;
    memset(&r, 0xff, sizeof(r));
    assert_int_equal(receipt_judge(&f, &r, sizeof(r), &out, NULL), 0);
    assert_int_equal(out.bad, PROBE_COUNT);
    for (size_t cap = 1; cap < 600; cap++) {
        char text[601];
        memset(text, 'x', sizeof(text));
        receipt_complaint(&out, text, cap);
        assert_true(strnlen(text, cap) < cap);
        assert_int_equal(text[cap], 'x');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(receipt_of_a_good_box_is_good),
        cmocka_unit_test(receipt_finds_each_single_wrong_answer),
        cmocka_unit_test(receipt_finds_the_user_namespace_of_init),
        cmocka_unit_test(receipt_takes_what_cannot_be_seen_for_a_doubt),
        cmocka_unit_test(receipt_refuses_every_other_length),
        cmocka_unit_test(receipt_does_not_take_answers_to_questions_that_were_not_asked),
        cmocka_unit_test(receipt_has_the_lines_from_outside),
        cmocka_unit_test(receipt_complaint_stays_within_its_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
