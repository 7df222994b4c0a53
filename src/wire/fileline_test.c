/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for wire/fileline. */
#include "base/test.h"

#include <errno.h>
#include <stdlib.h>

#include "wire/fileline.h"

#define CASE(f) cmocka_unit_test(f)

static const struct file_entry good_entries[] = {
    {'f', 0640, 6, 12345, 1700000000, 123456789, "name", ""},
    {'f', 0, 0, 0, 0, 0, "", ""},
    {'l', 0777, 3, 7, -2147472000, 1, "a b\n\x1b\xff", "../x y"},
    {'d', 07777, INT64_MAX, UINT64_MAX, INT64_MIN, 999999999, "...", ""},
    {'?', 01, 1, 1, INT64_MAX, 10, "-", ""},
};

/* Every prefix is short of something, and none reads beyond itself: each is copied to memory of its own size. */
static void entry_is_taken_whole_or_not_at_all(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(good_entries) / sizeof(good_entries[0]); i++) {
        char text[FILE_ENTRY_MAX];
        const struct file_entry *g = &good_entries[i];
        size_t n = file_entry_write(g, text), used = 0;
        for (size_t k = 0; k <= n; k++) {
            struct file_entry en;
            char *copy = malloc(k ? k : 1);
            assert_non_null(copy);
            memcpy(copy, text, k);
            assert_int_equal(file_entry_parse(copy, k, &en, &used), k == n);
            if (k == n) {
                assert_int_equal(used, n);
                assert_true(en.type == g->type && en.mode == g->mode && en.size == g->size && en.inode == g->inode);
                assert_true(en.mtime == g->mtime && en.mtime_ns == g->mtime_ns);
                assert_string_equal(en.name, g->name);
                assert_string_equal(en.target, g->target);
            }
            free(copy);
        }
    }
}

#define BYTES(s) s, sizeof(s) - 1

static void entry_refuses_what_is_not_one(void **state)
{
    (void)state;
    static const struct {
        const char *p;
        size_t n;
    } bad[] = {
        {BYTES("x 644 1 1 0 1 n\0\0")},
        {BYTES("\0 644 1 1 0 1 n\0\0")},
        {BYTES("f  644 1 1 0 1 n\0\0")},
        {BYTES("f 0644 1 1 0 1 n\0\0")},
        {BYTES("f 648 1 1 0 1 n\0\0")},
        {BYTES("f 10000 1 1 0 1 n\0\0")},
        {BYTES("f 644 01 1 0 1 n\0\0")},
        {BYTES("f 644 -1 1 0 1 n\0\0")},
        {BYTES("f 644 9223372036854775808 1 0 1 n\0\0")},
        {BYTES("f 644 1 -0 0 1 n\0\0")},
        {BYTES("f 644 1 --1 0 1 n\0\0")},
        {BYTES("f 644 1 -9223372036854775809 0 1 n\0\0")},
        {BYTES("f 644 1 1 1000000000 1 n\0\0")},
        {BYTES("f 644 1 1 0 18446744073709551616 n\0\0")},
        {BYTES("f 644 1 1 0 1 a/b\0\0")},
        {BYTES("f 644 1 1 0 1 .\0\0")},
        {BYTES("f 644 1 1 0 1 ..\0\0")},
        {BYTES("f 644 1 1 0 1 n\0t\0")},
        {BYTES("f 6\0 1 1 0 1 n\0\0")},
        {BYTES("f 644 \x31+1 1 0 1 n\0\0")},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct file_entry en;
        size_t used;
        assert_int_equal(file_entry_parse(bad[i].p, bad[i].n, &en, &used), -1);
    }
}

static void endless_names_are_refused_within_the_maximum(void **state)
{
    (void)state;
    char text[FILE_ENTRY_MAX + FILE_EVENT_MAX];
    struct file_entry en;
    struct file_event ev;
    size_t used;
    memset(text, 'n', sizeof(text));
    memcpy(text, "f 644 1 1 0 1 ", 14);
    assert_int_equal(file_entry_parse(text, 14 + FILE_NAME_MAX, &en, &used), 0);
    assert_int_equal(file_entry_parse(text, 14 + FILE_NAME_MAX + 1, &en, &used), -1);
    text[15] = 0;
    assert_int_equal(file_entry_parse(text, FILE_ENTRY_MAX, &en, &used), -1);
    memcpy(text, "created - ", 10);
    text[15] = 'n';
    assert_int_equal(file_event_parse(text, 10 + PATH_BYTES_MAX - 1, &ev, &used), 0);
    assert_int_equal(file_event_parse(text, FILE_EVENT_MAX, &ev, &used), -1);
    memset(text, '1', sizeof(text));
    memcpy(text, "f ", 2);
    assert_int_equal(file_entry_parse(text, 64, &en, &used), -1);
}

static void entries_follow_each_other(void **state)
{
    (void)state;
    char text[2 * FILE_ENTRY_MAX];
    struct file_entry en;
    size_t a = file_entry_write(&good_entries[0], text), b = file_entry_write(&good_entries[2], text + a), used;
    assert_int_equal(file_entry_parse(text, a + b, &en, &used), 1);
    assert_int_equal(used, a);
    assert_int_equal(file_entry_parse(text + used, a + b - used, &en, &used), 1);
    assert_int_equal(used, b);
    assert_string_equal(en.target, "../x y");
}

static void happening_is_taken_whole_or_not_at_all(void **state)
{
    (void)state;
    for (int kind = 0; kind < FILE_HAPPENING_COUNT; kind++) {
        bool bare = kind == FILE_READY || kind == FILE_OVERFLOW;
        struct file_event ev, g = {.kind = (enum file_happening)kind, .folder = kind % 2, .name = bare ? "" : "a/ b\n/...c"};
        char text[FILE_EVENT_MAX];
        size_t n = file_event_write(&g, text), used = 0;
        for (size_t k = 0; k <= n; k++) {
            char *copy = malloc(k ? k : 1);
            assert_non_null(copy);
            memcpy(copy, text, k);
            assert_int_equal(file_event_parse(copy, k, &ev, &used), k == n);
            if (k == n) {
                assert_int_equal(used, n);
                assert_true(ev.kind == g.kind && ev.folder == g.folder);
                assert_string_equal(ev.name, g.name);
            }
            free(copy);
        }
    }
}

static void happening_refuses_what_is_not_one(void **state)
{
    (void)state;
    static const struct {
        const char *p;
        size_t n;
    } bad[] = {
        {BYTES("made - n\0")},        {BYTES("create - n\0")},
        {BYTES("created n\0")},       {BYTES("created x n\0")},
        {BYTES("created - /n\0")},    {BYTES("created - a//b\0")},
        {BYTES("created - a/\0")},    {BYTES("created - .\0")},
        {BYTES("created - a/..\0")},  {BYTES("created - ../a\0")},
        {BYTES("created - a/./b\0")}, {BYTES("ready - n\0")},
        {BYTES("overflow - n\0")},    {BYTES("\0")},
        {BYTES("created\0- n\0")},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct file_event ev;
        size_t used;
        assert_int_equal(file_event_parse(bad[i].p, bad[i].n, &ev, &used), -1);
    }
}

static void status_goes_there_and_back(void **state)
{
    (void)state;
    static const struct {
        int os;
        enum pale_code code;
    } rows[] = {{ENOENT, PALE_NOT_FOUND}, {EEXIST, PALE_EXISTS}, {EACCES, PALE_DENIED},   {EPERM, PALE_DENIED},     {EROFS, PALE_DENIED},
                {ENOSPC, PALE_LIMIT},     {EDQUOT, PALE_LIMIT},  {EXDEV, PALE_BAD_INPUT}, {EOVERFLOW, PALE_DENIED}, {EIO, PALE_OS}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct pale_err e;
        errno = rows[i].os;
        (void)err_os(&e, "x");
        assert_int_equal(file_status_code((uint64_t)file_status(&e)), rows[i].code);
    }
    for (int code = 1; code < PALE_CODE_COUNT; code++) {
        struct pale_err e = {.code = (enum pale_code)code};
        assert_int_equal(file_status_code((uint64_t)file_status(&e)), code);
    }
    assert_int_equal(file_status_code(0), PALE_OK);
    static const uint64_t foreign[] = {1, FILE_STATUS_BASE, FILE_STATUS_BASE + PALE_CODE_COUNT, 125, 137, UINT64_MAX};
    for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++)
        assert_int_equal(file_status_code(foreign[i]), PALE_OS);
}

static void mode_is_octal_and_short(void **state)
{
    (void)state;
    uint32_t v = 1;
    assert_true(file_mode_parse("644", &v) && v == 0644);
    assert_true(file_mode_parse("0", &v) && v == 0);
    assert_true(file_mode_parse("7777", &v) && v == 07777);
    static const char *const bad[] = {"", "8", "00644", "-1", "64 ", "0x1"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(file_mode_parse(bad[i], &v));
}

static void piece_heads_go_there_and_back(void **state)
{
    (void)state;
    static const uint32_t rows[] = {0, 1, 0x01020304, UINT32_MAX};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint8_t head[FILE_PIECE_HEAD];
        file_piece_head(rows[i], head);
        assert_int_equal(file_piece_length(head), rows[i]);
    }
}

TESTS(CASE(entry_is_taken_whole_or_not_at_all), CASE(entry_refuses_what_is_not_one), CASE(endless_names_are_refused_within_the_maximum),
      CASE(entries_follow_each_other), CASE(happening_is_taken_whole_or_not_at_all), CASE(happening_refuses_what_is_not_one),
      CASE(status_goes_there_and_back), CASE(mode_is_octal_and_short), CASE(piece_heads_go_there_and_back))
