/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for wire/answer. */
#include "base/test.h"

#include <stdbool.h>
#include <stdlib.h>

#include "wire/answer.h"

#define CASE(f) cmocka_unit_test(f)
#define BYTES(s) s, sizeof(s) - 1

static const struct answer good[] = {
    {.kind = ANSWER_LINES, .line = 1, .last = 2, .total = 2, .size = 4, .flags = ANSWER_TOTAL, .text = "a\nb\n", .text_len = 4},
    {.kind = ANSWER_LINES, .line = INT64_MAX, .flags = ANSWER_BINARY | ANSWER_MORE, .size = 1, .text = ""},
    {.kind = ANSWER_LINES, .line = 7, .last = 7, .flags = ANSWER_CUT | ANSWER_MORE, .size = 9, .text = "\0\xff ", .text_len = 3},
    {.kind = ANSWER_EDITED, .count = 3, .line = 12},
    {.kind = ANSWER_ENTRY, .type = 'f', .size = 5, .mtime = -1, .path = "a/b c\n"},
    {
        .kind = ANSWER_ENTRY,
        .type = '?',
        .size = INT64_MAX,
        .mtime = INT64_MIN,
        .path = "...",
    },
    {.kind = ANSWER_MATCH, .line = 9, .path = "x", .text = "12 ", .text_len = 3},
    {.kind = ANSWER_CONTEXT, .line = 1, .path = "x/y", .text = "", .text_len = 0},
    {.kind = ANSWER_FILE, .path = "\xff"},
    {.kind = ANSWER_FILE, .path = ""},
    {.kind = ANSWER_COUNT, .count = 0, .path = "-"},
    {.kind = ANSWER_CHANGE, .type = 'm', .path = "from", .other = "to/there"},
    {.kind = ANSWER_CHANGE, .type = 'a', .path = "new", .other = ""},
    {.kind = ANSWER_END, .files = 1, .count = 2, .seen = 3, .flags = ANSWER_MORE},
};

static size_t write_whole(const struct answer *a, char *ret)
{
    size_t n = answer_head_write(a, ret);
    if (a->text_len)
        memcpy(ret + n, a->text, a->text_len);
    return n + a->text_len;
}

static const char *text_of(const char *s)
{
    return s ? s : "";
}

static void check_same(const struct answer *a, const struct answer *b)
{
    assert_true(a->kind == b->kind && a->type == b->type && a->line == b->line && a->last == b->last && a->total == b->total);
    assert_true(a->size == b->size && a->count == b->count && a->files == b->files && a->seen == b->seen && a->flags == b->flags);
    assert_true(a->mtime == b->mtime && a->text_len == b->text_len);
    assert_string_equal(a->path, text_of(b->path));
    assert_string_equal(a->other, text_of(b->other));
    assert_memory_equal(a->text, text_of(b->text), a->text_len);
}

/* Every prefix is short of something, and none reads beyond itself: each is copied to memory of its own size. */
static void answer_is_taken_whole_or_not_at_all(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        char text[ANSWER_HEAD_MAX + 16];
        size_t n = write_whole(&good[i], text), used = 0;
        for (size_t k = 0; k <= n; k++) {
            struct answer a;
            char *copy = malloc(k ? k : 1);
            assert_non_null(copy);
            memcpy(copy, text, k);
            assert_int_equal(answer_parse(copy, k, &a, &used), k == n);
            if (k == n) {
                assert_int_equal(used, n);
                check_same(&a, &good[i]);
            }
            free(copy);
        }
    }
}

static void answers_follow_each_other(void **state)
{
    (void)state;
    char text[2 * ANSWER_HEAD_MAX];
    struct answer a;
    size_t one = write_whole(&good[6], text), two = write_whole(&good[13], text + one), used;
    assert_int_equal(answer_parse(text, one + two, &a, &used), 1);
    assert_int_equal(used, one);
    assert_int_equal(answer_parse(text + one, two, &a, &used), 1);
    check_same(&a, &good[13]);
}

static void answer_refuses_what_is_not_one(void **state)
{
    (void)state;
    static const struct {
        const char *p;
        size_t n;
    } bad[] = {
        {BYTES("X ")},
        {BYTES("\0 ")},
        {BYTES("LL")},
        {BYTES("L 0 0 0 0 0 0 ")},
        {BYTES("L 01 ")},
        {BYTES("L -1 ")},
        {BYTES("L 9223372036854775808 ")},
        {BYTES("L 1 0 0 0 16 ")},
        {BYTES("L 2 1 0 0 0 1 x")},
        {BYTES("L 1 1 0 0 0 0 ")},
        {BYTES("L 1 0 0 0 0 1 x")},
        {BYTES("L 1 1 0 0 2 1 x")},
        {BYTES("L 1 1 0 0 8 1 x")},
        {BYTES("L 1 0 1 0 0 0 ")},
        {BYTES("L 1 1 0 0 0 524289 ")},
        {BYTES("E 0 1 ")},
        {BYTES("E 1 0 ")},
        {BYTES("G x ")},
        {BYTES("G f 1 1 /a\0")},
        {BYTES("G f 1 1 \0")},
        {BYTES("G f 1 1 a/../b\0")},
        {BYTES("G f 1 -0 ")},
        {BYTES("M 0 a\0"
               "0 ")},
        {BYTES("M 1 a\0"
               "501 ")},
        {BYTES("M 1 ..\0")},
        {BYTES("F a//b\0")},
        {BYTES("F ./a\0")},
        {BYTES("P x ")},
        {BYTES("P m a\0\0")},
        {BYTES("P a a\0b\0")},
        {BYTES("P m a\0../b\0")},
        {BYTES(". 1 1 1 2 ")},
        {BYTES(".  ")},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct answer a;
        size_t used;
        assert_int_equal(answer_parse(bad[i].p, bad[i].n, &a, &used), -1);
    }
}

static void endless_paths_are_refused_within_the_maximum(void **state)
{
    (void)state;
    static char text[ANSWER_HEAD_MAX];
    struct answer a;
    size_t used;
    memset(text, 'n', sizeof(text));
    memcpy(text, "F ", 2);
    assert_int_equal(answer_parse(text, 2 + PATH_BYTES_MAX - 1, &a, &used), 0);
    assert_int_equal(answer_parse(text, 2 + PATH_BYTES_MAX, &a, &used), -1);
    memset(text, '1', sizeof(text));
    memcpy(text, "E ", 2);
    assert_int_equal(answer_parse(text, 64, &a, &used), -1);
}

TESTS(CASE(answer_is_taken_whole_or_not_at_all), CASE(answers_follow_each_other), CASE(answer_refuses_what_is_not_one),
      CASE(endless_paths_are_refused_within_the_maximum))
