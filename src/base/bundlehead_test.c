/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for base/bundlehead. */
#include "base/test.h"

#include "base/bundlehead.h"
#include "base/limits.h"

static bool takes(const struct bundle_head *h)
{
    static const char name[BUNDLE_NAME_MAX];
    uint8_t p[BUNDLE_HEAD_MAX], again[BUNDLE_HEAD_MAX];
    struct bundle_head got;
    assert_int_equal(bundle_head_put(p, h, name), BUNDLE_HEAD_BYTES + h->name_len);
    if (!bundle_head_parse(p, &got))
        return false;
    bundle_head_put(again, &got, name);
    assert_memory_equal(p, again, BUNDLE_HEAD_BYTES);
    return true;
}

static void heads_are_read_back(void **state)
{
    (void)state;
    assert_true(takes(&(struct bundle_head){BUNDLE_FILE, 0777, INT64_MIN, INT64_MAX, 255}));
    assert_true(takes(&(struct bundle_head){BUNDLE_FILE, 0, INT64_MAX, 0, 1}));
    assert_true(takes(&(struct bundle_head){BUNDLE_FOLDER, 0700, 0, 0, 1}));
    assert_true(takes(&(struct bundle_head){BUNDLE_LINK, 0777, 0, PATH_BYTES_MAX - 1, 1}));
    assert_true(takes(&(struct bundle_head){.type = BUNDLE_LEAVE}));
    assert_true(takes(&(struct bundle_head){.type = BUNDLE_END}));
    assert_true(takes(&(struct bundle_head){.type = BUNDLE_ERROR}));
}

static void heads_that_say_more_than_they_may_are_refused(void **state)
{
    (void)state;
    static const struct bundle_head rows[] = {
        {.type = 0},
        {.type = BUNDLE_ERROR + 1},
        {.type = BUNDLE_FILE, .mode = 01000, .name_len = 1},
        {.type = BUNDLE_FILE, .size = 1ull << 63, .name_len = 1},
        {.type = BUNDLE_FILE},
        {.type = BUNDLE_FOLDER, .size = 1, .name_len = 1},
        {.type = BUNDLE_FOLDER},
        {.type = BUNDLE_LINK, .name_len = 1},
        {.type = BUNDLE_LINK, .size = PATH_BYTES_MAX, .name_len = 1},
        {.type = BUNDLE_LINK, .size = 1},
        {.type = BUNDLE_LEAVE, .name_len = 1},
        {.type = BUNDLE_LEAVE, .mode = 1},
        {.type = BUNDLE_END, .mtime = 1},
        {.type = BUNDLE_ERROR, .size = 1},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (takes(&rows[i]))
            fail_msg("row %zu was taken", i);
}

static void names_are_one_step(void **state)
{
    (void)state;
    static const char *const good[] = {"a", "...", ".a", "..a", "a b", "\n"};
    static const char *const bad[] = {"", ".", "..", "/", "a/b", "a/"};
    char longest[BUNDLE_NAME_MAX + 1];
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_true(bundle_is_name(good[i], strlen(good[i])));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(bundle_is_name(bad[i], strlen(bad[i])));
    memset(longest, 'a', sizeof(longest));
    assert_true(bundle_is_name(longest, BUNDLE_NAME_MAX));
    assert_false(bundle_is_name(longest, BUNDLE_NAME_MAX + 1));
    assert_false(bundle_is_name("a\0b", 3));
}

static void links_that_climb_out_are_known(void **state)
{
    (void)state;
    assert_true(bundle_is_inner_link("a/b", 0));
    assert_true(bundle_is_inner_link("../a", 2));
    assert_false(bundle_is_inner_link("..", 0));
    assert_false(bundle_is_inner_link("..", 1));
    assert_false(bundle_is_inner_link("../..", 2));
    assert_false(bundle_is_inner_link("a/..", 5));
    assert_false(bundle_is_inner_link("/a", 5));
}

TESTS(cmocka_unit_test(heads_are_read_back), cmocka_unit_test(heads_that_say_more_than_they_may_are_refused),
      cmocka_unit_test(names_are_one_step), cmocka_unit_test(links_that_climb_out_are_known))
