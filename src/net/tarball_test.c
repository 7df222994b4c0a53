/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for net/tarball: what it makes is read by net/untar, which reads what others make. */
#include "net/tartest.h"

static struct bytes b;

static int empty(void **state)
{
    (void)state;
    b.n = 0;
    return 0;
}

/* What untar makes of the archive of a bundle, as text. */
static const char *told(enum way way)
{
    static struct bytes tar;
    struct carried *c = carry_whole(way, &b);
    if (c->result < 0)
        fail_msg("%s", c->e.text);
    assert_int_equal(c->result, 1);
    assert_int_equal(c->out.n % TAR_BLOCK, 0);
    tar = c->out;
    c = carry_whole(UNTAR, &tar);
    if (c->result < 0)
        fail_msg("%s", c->e.text);
    b.n = 0;
    return tell(&c->out);
}

static void a_tree(void)
{
    add_bundle(&b, BUNDLE_FOLDER, "tree", "");
    add_bundle(&b, BUNDLE_FILE, "f", "hello");
    add_bundle(&b, BUNDLE_FOLDER, "d", "");
    add_bundle(&b, BUNDLE_LINK, "l", "../f");
    add_bundle(&b, BUNDLE_LINK, "m", "/etc/passwd");
    add_bundle(&b, BUNDLE_LEAVE, "", "");
    add_bundle(&b, BUNDLE_FILE, "g", "");
    add_bundle(&b, BUNDLE_LEAVE, "", "");
    add_bundle(&b, BUNDLE_END, "", "");
}

static void a_tree_gets_the_name_it_is_given(void **state)
{
    (void)state;
    a_tree();
    assert_string_equal(told(TARBALL_DOT), "top 755{f 644=hello;d 755{l>../f;m>/etc/passwd;}g 644=;}.");
    a_tree();
    assert_string_equal(told(TARBALL_NAMED), "top 755{named 755{f 644=hello;d 755{l>../f;m>/etc/passwd;}g 644=;}}.");
    a_tree();
    assert_string_equal(told(TARBALL_INNER), "top 755{f 644=hello;d 755{l>../f;}g 644=;}.");
    add_bundle(&b, BUNDLE_FILE, "own", "hello");
    add_bundle(&b, BUNDLE_END, "", "");
    assert_string_equal(told(TARBALL_DOT), "top 755{own 644=hello;}.");
    add_bundle(&b, BUNDLE_LINK, "own", "to");
    add_bundle(&b, BUNDLE_END, "", "");
    assert_string_equal(told(TARBALL_NAMED), "top 755{named>to;}.");
}

static void names_that_are_none_are_not_given(void **state)
{
    (void)state;
    static struct tarball t;
    static const char *const bad[] = {"", "..", "a/b", "/"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(tarball_init(&t, bad[i], false, NULL), -PALE_BAD_INPUT);
}

static void the_header_is_one_that_every_tar_reads(void **state)
{
    (void)state;
    static const struct {
        size_t at, n;
        const char *bytes;
    } rows[] = {
        {0, 6, "named"},
        {100, 24, "0000644\0000000000\0000000000"}, /* mode and owners */
        {124, 12, "00000000005"},
        {136, 12, "00000000001"},
        {156, 2, "0"},
        {257, 9, "ustar\00000"},
        {265, 1, ""},
        {512, 6, "hello"},
    };
    add_bundle(&b, BUNDLE_FILE, "own", "hello");
    add_bundle(&b, BUNDLE_END, "", "");
    struct carried *c = carry_whole(TARBALL_NAMED, &b);
    assert_int_equal(c->result, 1);
    assert_int_equal(c->out.n, (2 + TAR_END_BLOCKS) * TAR_BLOCK);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_memory_equal(c->out.at + rows[i].at, rows[i].bytes, rows[i].n);
}

static void pieces_of_every_size_come_to_the_same(void **state)
{
    (void)state;
    a_tree();
    check_pieces(TARBALL_DOT, &b);
}

static void every_prefix_needs_more(void **state)
{
    (void)state;
    a_tree();
    check_prefixes(TARBALL_DOT, &b, b.n);
}

/* Lengths around every limit of the header's fields, as names of folders, files and links. */
static void names_and_targets_of_every_length_come_back(void **state)
{
    (void)state;
    char name[BUNDLE_NAME_MAX + 1], target[600], want[2048];
    for (int n = 1; n <= (int)BUNDLE_NAME_MAX; n++) {
        memset(name, 'n', sizeof(name));
        name[n] = 0;
        memset(target, 't', sizeof(target));
        target[2 * n] = 0;
        add_bundle(&b, BUNDLE_FOLDER, "tree", "");
        add_bundle(&b, BUNDLE_FILE, name, "1");
        add_bundle(&b, BUNDLE_LINK, "l", target);
        add_bundle(&b, BUNDLE_FOLDER, name, "");
        add_bundle(&b, BUNDLE_FOLDER, "inner", "");
        add_bundle(&b, BUNDLE_FILE, name, "2");
        for (int i = 0; i < 3; i++)
            add_bundle(&b, BUNDLE_LEAVE, "", "");
        add_bundle(&b, BUNDLE_END, "", "");
        snprintf(want, sizeof(want), "top 755{%s 644=1;l>%s;%s 755{inner 755{%s 644=2;}}}.", name, target, name, name);
        assert_string_equal(told(TARBALL_DOT), want);
    }
}

static void times_and_sizes_that_no_header_holds_are_kept(void **state)
{
    (void)state;
    static const int64_t times[] = {0, -1, TAR_NUMBER_MAX, TAR_NUMBER_MAX + 1, INT64_MAX, INT64_MIN};
    static const uint64_t sizes[] = {0, TAR_NUMBER_MAX, TAR_NUMBER_MAX + 1, TAR_FILE_MAX};
    static struct bytes tar;
    uint8_t head[BUNDLE_HEAD_MAX];
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
        for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
            struct bundle_head h = {.type = BUNDLE_FILE, .mtime = times[i], .size = sizes[k], .name_len = 1};
            b.n = 0;
            add(&b, head, bundle_head_put(head, &h, "f"));
            tar = carry(TARBALL_DOT, &b, b.n, 4096, false)->out;
            struct carried *c = carry(UNTAR, &tar, tar.n, 4096, false);
            assert_int_equal(c->result, 0);
            assert_true(bundle_head_parse(c->out.at + BUNDLE_HEAD_BYTES + 3, &h));
            assert_true(h.mtime == times[i] && h.size == sizes[k]);
        }
}

static void what_was_an_archive_becomes_one_with_the_same_in_it(void **state)
{
    (void)state;
    static struct bytes tar;
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        load_sample(&tar, i);
        b = carry_whole(UNTAR, &tar)->out;
        tar = carry_whole(TARBALL_DOT, &b)->out;
        struct carried *c = carry_whole(UNTAR, &tar);
        assert_int_equal(c->result, 1);
        assert_int_equal(c->out.n, b.n);
        assert_memory_equal(c->out.at, b.at, b.n);
    }
}

static void refused(enum pale_code code, const char *words)
{
    struct carried *c = carry_whole(TARBALL_DOT, &b);
    assert_int_equal(c->result, -(int)code);
    if (!strstr(c->e.text, words))
        fail_msg("\"%s\" has no \"%s\"", c->e.text, words);
    b.n = 0;
}

static void names_that_are_paths_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"..", ".", "a/b", "/etc"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        add_bundle(&b, BUNDLE_FOLDER, "tree", "");
        add_bundle(&b, BUNDLE_FILE, bad[i], "");
        refused(PALE_CORRUPT, "a name that is no name");
        add_bundle(&b, BUNDLE_FOLDER, bad[i], "");
        refused(PALE_CORRUPT, "a name that is no name");
    }
    add_bundle(&b, BUNDLE_FILE, "a?b", "");
    b.at[b.n - 2] = 0;
    refused(PALE_CORRUPT, "a name that is no name");
    add_bundle(&b, BUNDLE_LINK, "l", "a?b");
    b.at[b.n - 2] = 0;
    refused(PALE_CORRUPT, "a link that is no link");
}

static void bundles_that_are_none_are_refused(void **state)
{
    (void)state;
    add_bundle(&b, BUNDLE_LEAVE, "", "");
    refused(PALE_CORRUPT, "never entered");
    add_bundle(&b, BUNDLE_END, "", "");
    refused(PALE_CORRUPT, "ended early");
    add_bundle(&b, BUNDLE_ERROR, "", "");
    refused(PALE_GONE, "gave up");
    add_bundle(&b, BUNDLE_FILE, "f", "");
    add_bundle(&b, BUNDLE_FILE, "g", "");
    refused(PALE_CORRUPT, "more than one thing");
    add_bundle(&b, BUNDLE_FOLDER, "d", "");
    add_bundle(&b, BUNDLE_END, "", "");
    refused(PALE_CORRUPT, "ended early");
    a_tree();
    add(&b, "", 1);
    refused(PALE_CORRUPT, "goes on after its end");
    add_bundle(&b, BUNDLE_FILE, "f", "");
    b.at[0] = 9;
    refused(PALE_CORRUPT, "damaged");
}

static void limits_hold_and_no_more(void **state)
{
    (void)state;
    char name[BUNDLE_NAME_MAX + 1];
    uint8_t head[BUNDLE_HEAD_MAX];
    for (int i = 0; i < BUNDLE_DEPTH_MAX; i++)
        add_bundle(&b, BUNDLE_FOLDER, "d", "");
    size_t deep = b.n;
    add_bundle(&b, BUNDLE_FOLDER, "d", "");
    refused(PALE_LIMIT, "nested deeper than 128");
    b.n = deep;
    for (int i = 0; i < BUNDLE_DEPTH_MAX; i++)
        add_bundle(&b, BUNDLE_LEAVE, "", "");
    add_bundle(&b, BUNDLE_END, "", "");
    told(TARBALL_DOT);

    memset(name, 'n', sizeof(name));
    name[BUNDLE_NAME_MAX] = 0;
    for (int i = 0; i < 17; i++)
        add_bundle(&b, BUNDLE_FOLDER, name, "");
    refused(PALE_LIMIT, "is longer than 4093 bytes");

    struct bundle_head h = {.type = BUNDLE_FILE, .size = TAR_FILE_MAX + 1, .name_len = 1};
    add(&b, head, bundle_head_put(head, &h, "f"));
    refused(PALE_LIMIT, "the file f is longer than");
}

#define CASE(f) cmocka_unit_test_setup(f, empty)
TESTS(CASE(a_tree_gets_the_name_it_is_given), CASE(names_that_are_none_are_not_given), CASE(the_header_is_one_that_every_tar_reads),
      CASE(pieces_of_every_size_come_to_the_same), CASE(every_prefix_needs_more), CASE(names_and_targets_of_every_length_come_back),
      CASE(times_and_sizes_that_no_header_holds_are_kept), CASE(what_was_an_archive_becomes_one_with_the_same_in_it),
      CASE(names_that_are_paths_are_refused), CASE(bundles_that_are_none_are_refused), CASE(limits_hold_and_no_more))
