/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for box/claims. */
#include "base/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "box/claims.h"

static char dir[64], a[96], inner[128], b[96], alias[96];

static int fresh(void **state)
{
    (void)state;
    snprintf(dir, sizeof(dir), "/tmp/claims-test-XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    snprintf(a, sizeof(a), "%s/a", dir);
    snprintf(inner, sizeof(inner), "%s/inner", a);
    snprintf(b, sizeof(b), "%s/ab", dir);
    snprintf(alias, sizeof(alias), "%s/alias", dir);
    return mkdir(a, 0700) < 0 || mkdir(inner, 0700) < 0 || mkdir(b, 0700) < 0 || symlink(a, alias) < 0 ? -1 : 0;
}

static int clean(void **state)
{
    (void)state;
    return fd_remove_tree(AT_FDCWD, dir, NULL);
}

static bool wide = true;

/* As the kernel does for a keeper that was killed. */
static void die(struct claims *held)
{
    own_close(&held->record_fd);
    own_close(&held->places_fd);
    ancestors_done(&held->folders);
}

static int take(const char *id, const char *path, struct claims *held)
{
    const char *paths[] = {path};
    const struct claim c = {.id = id, .name = id, .data = wide ? NULL : path, .paths = paths, .count = wide ? 1 : 0};
    struct pale_err e;
    return claims_take(dir, &c, held, &e);
}

static void one_folder_has_one_writer_by_any_name(void **state)
{
    (void)state;
    struct claims first = CLAIMS_NONE, second = CLAIMS_NONE;
    assert_int_equal(take("one", a, &first), 0);
    assert_int_equal(take("two", a, &second), -PALE_DENIED);
    assert_int_equal(take("two", inner, &second), -PALE_DENIED);
    assert_int_equal(take("two", alias, &second), -PALE_DENIED);
    assert_int_equal(take("two", b, &second), 0);
    claims_drop(dir, "one", &first);
    claims_drop(dir, "two", &second);
}

static void folder_above_a_claimed_one_is_refused(void **state)
{
    (void)state;
    struct claims first = CLAIMS_NONE, second = CLAIMS_NONE;
    assert_int_equal(take("one", inner, &first), 0);
    assert_int_equal(take("two", a, &second), -PALE_DENIED);
    claims_drop(dir, "one", &first);
    assert_int_equal(take("two", a, &second), 0);
    claims_drop(dir, "two", &second);
}

static void claim_of_the_dead_does_not_bind(void **state)
{
    (void)state;
    struct claims first = CLAIMS_NONE, second = CLAIMS_NONE;
    assert_int_equal(take("one", a, &first), 0);
    die(&first);
    assert_int_equal(take("two", a, &second), 0);
    claims_drop(dir, "two", &second);
}

/* Only wide claims are many-sided: each other kind of pair must be seen from both ends. */
static void narrow_and_wide_claims_bind_each_other(void **state)
{
    (void)state;
    struct claims first = CLAIMS_NONE, second = CLAIMS_NONE;
    for (int narrow_first = 0; narrow_first < 2; narrow_first++) {
        wide = !narrow_first;
        assert_int_equal(take("one", narrow_first ? inner : a, &first), 0);
        wide = narrow_first;
        assert_int_equal(take("two", narrow_first ? a : inner, &second), -PALE_DENIED);
        assert_int_equal(take("two", b, &second), 0);
        claims_drop(dir, "one", &first);
        claims_drop(dir, "two", &second);
        wide = true;
        assert_int_equal(take("two", a, &second), 0);
        claims_drop(dir, "two", &second);
    }
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, fresh, clean)
static void claim_is_left_until_it_is_dropped_or_swept(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct claims fd = CLAIMS_NONE;
        wide = i == 0;
        assert_false(claims_are_left(dir, "one"));
        assert_int_equal(take("one", a, &fd), 0);
        assert_true(claims_are_left(dir, "one"));
        assert_false(claims_are_left(dir, "two"));
        if (i == 0)
            claims_drop(dir, "one", &fd);
        else
            claims_sweep(dir, "one");
        assert_false(claims_are_left(dir, "one"));
        if (i)
            die(&fd);
    }
    wide = true;
}

/* A claim that another keeper was cut short in writing, or that somebody changed. */
static void claim_that_cannot_be_read_is_no_permission(void **state)
{
    (void)state;
    static const char *const lines[] = {"1:2", "1:2 x", "1:2 ", "\n"};
    char file[96];
    snprintf(file, sizeof(file), "%s/claim-other", dir);
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        struct claims mine = CLAIMS_NONE;
        int theirs = open(file, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        assert_true(theirs >= 0 && flock(theirs, LOCK_EX) == 0);
        assert_true(fd_write_full(theirs, "other\n", 6) && fd_write_full(theirs, lines[i], strlen(lines[i])));
        assert_int_equal(take("one", a, &mine), -PALE_DENIED);
        close(theirs);
    }
    unlink(file);
}

TESTS(CASE(one_folder_has_one_writer_by_any_name), CASE(folder_above_a_claimed_one_is_refused), CASE(claim_of_the_dead_does_not_bind),
      CASE(narrow_and_wide_claims_bind_each_other), CASE(claim_is_left_until_it_is_dropped_or_swept),
      cmocka_unit_test_setup_teardown(claim_that_cannot_be_read_is_no_permission, fresh, clean))
