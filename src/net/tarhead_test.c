/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for net/tarhead; what is refused stands with net/untar. */
#include "base/test.h"

#include <stdbool.h>

#include "net/tarhead.h"

static void headers_are_read_back(void **state)
{
    (void)state;
    struct tar_head h = {.type = TAR_LINK, .mode = 0751, .size = TAR_NUMBER_MAX, .mtime = 1700000000, .link = "to"}, got;
    uint8_t p[TAR_BLOCK];
    memset(h.name, 'n', TAR_NAME_MAX);
    h.name[TAR_PREFIX_FIELD] = '/';
    memset(h.link, 't', TAR_NAME_FIELD);
    tar_head_put(p, &h);
    assert_int_equal(tar_head_parse(p, &got, NULL), 1);
    assert_memory_equal(&got, &h, sizeof(h));
    h.size = TAR_NUMBER_MAX + 1;
    h.mtime = -1;
    tar_head_put(p, &h);
    assert_int_equal(tar_head_parse(p, &got, NULL), 1);
    assert_true(got.size == 0 && got.mtime == 0);
    memset(p, 0, sizeof(p));
    assert_int_equal(tar_head_parse(p, &got, NULL), 0);
}

static void paths_are_split_where_both_parts_fit(void **state)
{
    (void)state;
    char path[300];
    for (size_t n = 1; n < sizeof(path); n++)
        for (size_t slash = 0; slash < n; slash++) {
            memset(path, 'p', n);
            path[slash] = '/';
            size_t split = tar_split(path, n);
            bool fits = slash > 0 && slash <= TAR_PREFIX_FIELD && n - slash - 1 > 0 && n - slash - 1 <= TAR_NAME_FIELD;
            assert_true(split == (n <= TAR_NAME_FIELD ? 0 : fits ? slash : SIZE_MAX));
        }
}

static void parents_and_paddings(void **state)
{
    (void)state;
    assert_int_equal(tar_parent("a/bc/d", 6), 4);
    assert_int_equal(tar_parent("a", 1), 0);
    assert_int_equal(tar_parent("", 0), 0);
    assert_int_equal(tar_padding(0), 0);
    assert_int_equal(tar_padding(1), 511);
    assert_int_equal(tar_padding(511), 1);
    assert_int_equal(tar_padding(512), 0);
    assert_int_equal(tar_padding(1ull << 40 | 5), 507);
}

TESTS(cmocka_unit_test(headers_are_read_back), cmocka_unit_test(paths_are_split_where_both_parts_fit),
      cmocka_unit_test(parents_and_paddings))
