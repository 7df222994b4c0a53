/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for wire/spool: against a model that remembers everything. */
#include "base/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "wire/frame.h"
#include "wire/spool.h"

#define CAP 20000u
#define PIECE 3000u
#define ADDS 4000u

static char dir[64];

static int make_dir(void **state)
{
    (void)state;
    snprintf(dir, sizeof(dir), "/tmp/spool-test-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    (void)state;
    char path[96];
    for (unsigned i = 0; i < 10; i++) {
        snprintf(path, sizeof(path), "%s/job-%u.log", dir, i);
        unlink(path);
    }
    return rmdir(dir);
}

static bool has_file(unsigned number)
{
    char path[96];
    snprintf(path, sizeof(path), "%s/job-%u.log", dir, number);
    return access(path, F_OK) == 0;
}

/* The output byte number i is i % 251: a reader can tell what it got. */
static void add(struct spool *s, uint64_t *total, size_t n)
{
    uint8_t piece[PIECE];
    for (size_t i = 0; i < n; i++)
        piece[i] = (uint8_t)((*total + i) % 251);
    assert_true(spool_add(s, (uint8_t)(1 + *total % 2), piece, n));
    *total += n;
}

/* Everything from the mark to the end is what was put in there. */
static uint64_t drain(const struct spool *s, struct spool_mark *m, size_t room)
{
    static uint8_t block[65536];
    uint64_t missed, all = 0;
    size_t n;
    do {
        uint64_t at = m->bytes, missed_from = at;
        n = spool_read(s, m, block, room, &missed);
        at += missed;
        all += missed;
        assert_true(missed == 0 || at == missed_from + missed);
        for (size_t used = 0; used < n;) {
            struct frame f;
            size_t one;
            assert_int_equal(frame_parse(block + used, n - used, &f, &one), 1);
            assert_int_equal(f.type, 1 + at % 2);
            for (size_t i = 0; i < f.len; i++)
                assert_int_equal(f.data[i], (at + i) % 251);
            at += f.len;
            used += one;
        }
        assert_int_equal(at, m->bytes);
    } while (n > 0);
    return all;
}

static void little_output_makes_no_file(void **state)
{
    (void)state;
    struct spool s;
    uint64_t total = 0;
    spool_init(&s, dir, 1, CAP);
    for (int i = 0; i < 40; i++)
        add(&s, &total, 90);
    assert_false(has_file(1));
    struct spool_mark m = {0};
    assert_int_equal(drain(&s, &m, 4096), 0);
    assert_int_equal(m.bytes, total);
    add(&s, &total, 1000);
    assert_true(has_file(1));
    assert_int_equal(drain(&s, &m, 4096), 0);
    assert_int_equal(m.bytes, total);
    spool_done(&s);
}

static void readers_get_all_or_are_told_what_they_missed(void **state)
{
    (void)state;
    struct spool s;
    uint64_t total = 0, missed[3] = {0};
    struct spool_mark m[3] = {0};
    unsigned seed = 7;
    spool_init(&s, dir, 2, CAP);
    for (unsigned i = 0; i < ADDS; i++) {
        add(&s, &total, 1 + (size_t)rand_r(&seed) % (i % 3 ? 40 : PIECE - 1));
        missed[0] += drain(&s, &m[0], PIECE + FRAME_HEAD);
        if (i % 5 == 0)
            missed[1] += drain(&s, &m[1], 65536);
        if (i % 97 == 0)
            missed[2] += drain(&s, &m[2], 65536);
        assert_true(s.end - s.begin <= CAP);
    }
    assert_int_equal(missed[0], 0);
    assert_int_equal(m[0].bytes, total);
    assert_true(missed[2] > 0 && missed[2] < total);
    spool_done(&s);
}

static void seek_finds_the_frame_of_a_byte(void **state)
{
    (void)state;
    struct spool s;
    uint64_t total = 0;
    spool_init(&s, dir, 3, CAP);
    for (unsigned i = 0; i < 100; i++)
        add(&s, &total, 500);
    const uint64_t places[] = {0, s.lost, s.lost + 1, s.lost + 499, s.lost + 500, total - 1, total, total + 5};
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        struct spool_mark m;
        spool_seek(&s, places[i], &m);
        uint64_t want = places[i] < s.lost ? s.lost : places[i] > total ? total : places[i] - places[i] % 500;
        assert_int_equal(m.bytes, want);
        assert_int_equal(drain(&s, &m, 65536), 0);
        assert_int_equal(m.bytes, total);
    }
    spool_done(&s);
}

static void a_disk_that_refuses_ends_the_keeping(void **state)
{
    (void)state;
    struct spool s;
    struct spool_mark m = {0};
    uint64_t total = 0;
    spool_init(&s, "/nonexistent", 4, CAP);
    add(&s, &total, 2000);
    static const uint8_t more[PIECE];
    assert_false(spool_add(&s, 1, more, sizeof(more)));
    assert_false(spool_add(&s, 1, more, 1));
    assert_int_equal(drain(&s, &m, 65536), 0);
    assert_int_equal(m.bytes, total);
    spool_done(&s);
}

static void what_cannot_fit_is_refused_and_nothing_is_lost(void **state)
{
    (void)state;
    static const uint8_t huge[CAP];
    struct spool s;
    uint64_t total = 0;
    struct spool_mark m = {0};
    spool_init(&s, dir, 5, CAP);
    add(&s, &total, 2900);
    assert_false(spool_add(&s, 1, huge, sizeof(huge)));
    add(&s, &total, 2900);
    assert_int_equal(drain(&s, &m, 65536), 0);
    assert_int_equal(m.bytes, total);
    spool_done(&s);
}

/* A reader is told what was let go before it came to it, and gets what comes then, round and round. */
static void what_is_let_go_takes_no_room_and_is_told_as_missed(void **state)
{
    (void)state;
    struct spool s;
    struct spool_mark early = {0}, late = {0};
    uint64_t total = 0, missed = 0;
    spool_init(&s, dir, 9, CAP);
    for (int round = 0; round < 5; round++) {
        while (spool_stored(&s) < (round % 2 ? CAP : CAP / 2))
            add(&s, &total, PIECE - (unsigned)round);
        spool_seek(&s, total - 10, &late);
        spool_drop(&s);
        assert_int_equal(spool_stored(&s), 0);
        uint8_t block[FRAME_HEAD + PIECE];
        assert_int_equal(spool_read(&s, &early, block, sizeof(block), &missed), 0);
        assert_int_equal(early.bytes, total);
        assert_true(missed > 0);
        for (int i = 0; i < 3; i++)
            add(&s, &total, 100);
        assert_int_equal(spool_stored(&s), 3 * (FRAME_HEAD + 100));
        assert_int_equal(drain(&s, &early, sizeof(block)), 0); /* nothing missed */
        assert_int_equal(early.bytes, total);
    }
    spool_forget(&s);
    assert_false(has_file(9));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(little_output_makes_no_file),
        cmocka_unit_test(readers_get_all_or_are_told_what_they_missed),
        cmocka_unit_test(seek_finds_the_frame_of_a_byte),
        cmocka_unit_test(a_disk_that_refuses_ends_the_keeping),
        cmocka_unit_test(what_cannot_fit_is_refused_and_nothing_is_lost),
        cmocka_unit_test(what_is_let_go_takes_no_room_and_is_told_as_missed),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
