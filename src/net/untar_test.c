/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for net/untar. */
#include "net/tartest.h"

static struct bytes a;

static int empty(void **state)
{
    (void)state;
    a.n = 0;
    return 0;
}

/* The archive so far, with its end, as a bundle's text. */
static const char *told(void)
{
    add_end(&a);
    struct carried *c = carry_whole(UNTAR, &a);
    if (c->result < 0)
        fail_msg("%s", c->e.text);
    assert_int_equal(c->result, 1);
    a.n = 0;
    return tell(&c->out);
}

/* The archive so far is refused, with that code and a text that has these words. */
static void refused(enum pale_code code, const char *words)
{
    add_end(&a);
    struct carried *c = carry_whole(UNTAR, &a);
    assert_int_equal(c->result, -(int)code);
    if (!strstr(c->e.text, words))
        fail_msg("\"%s\" has no \"%s\"", c->e.text, words);
    a.n = 0;
}

#define N10 "nnnnnnnnnn"
#define N110 N10 N10 N10 N10 N10 N10 N10 N10 N10 N10 N10
#define T10 "tttttttttt"
#define T105 T10 T10 T10 T10 T10 T10 T10 T10 T10 T10 "ttttt"

static void archives_of_others_are_taken(void **state)
{
    (void)state;
    static const char *const want[] = {
        "top 755{d 755{", "top 755{d 755{", "top 755{r 775{d 775{", "file 640=hello\n;", "file 640=hello\n;", "file 664=hello\n;",
    };
    for (size_t i = 0; i < 3; i++) {
        load_sample(&a, i);
        struct carried *c = carry_whole(UNTAR, &a);
        assert_int_equal(c->result, 1);
        const char *text = tell(&c->out);
        assert_memory_equal(text, want[i], strlen(want[i]));
        assert_non_null(strstr(text, want[3 + i]));
        assert_non_null(strstr(text, "link>file;"));
        assert_non_null(strstr(text, "far>" T105 ";"));
        assert_non_null(strstr(text, i == 2 ? N110 " 664=x;" : N110 " 644=x;"));
        assert_string_equal(strstr(text, "}"), i == 2 ? "}}}." : "}}.");
    }
}

static void pieces_of_every_size_come_to_the_same(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        load_sample(&a, i);
        check_pieces(UNTAR, &a);
    }
}

static void every_prefix_needs_more(void **state)
{
    (void)state;
    add_entry(&a, TAR_FOLDER, "d/", "");
    add_record(&a, "path", "d/file");
    add_entry(&a, TAR_FILE, "x", "hello");
    add_entry(&a, TAR_LONG_LINK, "x", "target");
    add_entry(&a, TAR_LINK, "d/link", "");
    add_end(&a);
    size_t least = a.n;
    add_zeros(&a, 700);
    check_prefixes(UNTAR, &a, least);
}

static void folders_are_left_and_entered(void **state)
{
    (void)state;
    add_entry(&a, TAR_FILE, "a/b/f", "1");
    add_entry(&a, TAR_FILE, "a/b/g", "2");
    add_entry(&a, TAR_FILE, "h", "3");
    add_entry(&a, TAR_FOLDER, "a/b/c/", "");
    add_entry(&a, TAR_FILE, "ab", "4");
    add_entry(&a, TAR_FILE, "a/bb/i", "5");
    assert_string_equal(told(), "top 755{a 755{b 755{f 644=1;g 644=2;}}h 644=3;a 755{b 755{c 644{}}}ab 644=4;a 755{bb 755{i 644=5;}}}.");
}

static void the_top_is_a_folder_that_may_be_announced(void **state)
{
    (void)state;
    assert_string_equal(told(), "top 755{}.");
    add_entry(&a, TAR_FOLDER, "./", "");
    add_entry(&a, TAR_FILE, "./f", "1");
    add_entry(&a, TAR_FOLDER, ".", "");
    assert_string_equal(told(), "top 644{f 644=1;}.");
}

static void one_name_may_come_again(void **state)
{
    (void)state;
    add_entry(&a, TAR_FILE, "f", "1");
    add_entry(&a, TAR_FILE, "f", "2");
    add_entry(&a, TAR_FOLDER, "d/", "");
    add_entry(&a, TAR_FOLDER, "d", "");
    assert_string_equal(told(), "top 755{f 644=1;f 644=2;d 644{}}.");
    add_entry(&a, TAR_FILE, "a/b/f", "1");
    add_entry(&a, TAR_FOLDER, "a", "");
    add_entry(&a, TAR_FOLDER, "./", "");
    add_entry(&a, TAR_FILE, "a/b/g", "2");
    assert_string_equal(told(), "top 755{a 755{b 755{f 644=1;g 644=2;}}}.");
}

/* The head of the first entry below the top. */
static struct bundle_head first_head(void)
{
    struct bundle_head h;
    add_end(&a);
    struct carried *c = carry_whole(UNTAR, &a);
    assert_int_equal(c->result, 1);
    assert_true(bundle_head_parse(c->out.at + BUNDLE_HEAD_BYTES + 3, &h));
    a.n = 0;
    return h;
}

static void pax_records_say_more(void **state)
{
    (void)state;
    add_entry(&a, TAR_PAX_GLOBAL, "g", "8 path=x\n and what is no record");
    add_record(&a, "path", "./" N110 "/" N110);
    add_record(&a, "SCHILY.xattr.user.whatever", "\n=17 path=b\n");
    add_record(&a, "size", "3");
    add_head(&a, TAR_FILE, "f", "", 0);
    add_padded(&a, "abc", 3);
    add_record(&a, "linkpath", T105);
    add_head(&a, TAR_LINK, "l", "other", 0);
    assert_string_equal(told(), "top 755{" N110 " 755{" N110 " 644=abc;}l>" T105 ";}.");
    static const struct {
        const char *text;
        int64_t mtime;
    } rows[] = {{"1700000000.123456789", 1700000000}, {"-5.5", -5}, {"-0.5", 0}, {"9223372036854775807", INT64_MAX}, {"5.", 5}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        add_record(&a, "mtime", rows[i].text);
        add_entry(&a, TAR_FILE, "f", "");
        assert_true(first_head().mtime == rows[i].mtime);
    }
}

static void what_was_said_of_one_entry_is_not_of_the_next(void **state)
{
    (void)state;
    add_record(&a, "path", "p");
    add_entry(&a, TAR_FILE, "f", "1");
    add_entry(&a, TAR_FILE, "g", "2");
    add_entry(&a, TAR_LONG_NAME, "x", "q");
    add_entry(&a, TAR_FILE, "f", "3");
    add_entry(&a, TAR_FILE, "g", "4");
    assert_string_equal(told(), "top 755{p 644=1;g 644=2;q 644=3;g 644=4;}.");
}

static void numbers_as_others_write_them_are_read(void **state)
{
    (void)state;
    static const uint8_t three[12] = {0x80, [11] = 3},
                         before[12] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe};
    add_head(&a, TAR_FILE, "f", "", 0);
    poke(&a, 124, three, 12);
    poke(&a, 136, before, 12);
    add_padded(&a, "abc", 3);
    struct bundle_head h = first_head();
    assert_true(h.size == 3 && h.mtime == -2);
    add_head(&a, TAR_FILE, "f", "", 0);
    poke(&a, 100, "  644 \0", 8);
    poke(&a, 124, "         3 ", 12);
    poke(&a, 136, "\0\0\0\0\0\0\0\0\0\0\0", 12);
    poke(&a, 108, "\377junk", 6); /* an owner, who is not looked at */
    add_padded(&a, "abc", 3);
    h = first_head();
    assert_true(h.size == 3 && h.mode == 0644 && h.mtime == 0);
}

static void numbers_that_are_none_are_refused(void **state)
{
    (void)state;
    static const struct {
        size_t at;
        const char *field;
        const char *words;
    } rows[] = {
        {100, "0000648\0", "f: its mode or its time is no number"},
        {100, "\0\0\0\0\0\0\0", "mode"},
        {124, "0000000000x", "f: its size is no number"},
        {124, "\0\0\0\0\0\0\0\0\0\0\0", "size"},
        {124, "-0000000001", "size"},
        {124, "00000 00001", "size"},
        {124, "\377\377\377\377\377\377\377\377\377\377\377\377", "size"},
        {124, "\201\0\0\0\0\0\0\0\0\0\0", "size"},
        {124, "\200\0\0\1\0\0\0\0\0\0\0", "size"},
        {124, "\200\0\0\0\200\0\0\0\0\0\0", "size"},
        {136, "1700000000.", "time"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        add_head(&a, TAR_FILE, "f", "", 0);
        poke(&a, rows[i].at, rows[i].field, rows[i].at == 100 ? 8 : 12);
        refused(PALE_BAD_INPUT, rows[i].words);
    }
}

static void paths_that_lead_elsewhere_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *path, *words;
    } rows[] = {
        {"/etc/passwd", "entry /etc/passwd: its path is absolute"},
        {"..", "the step .."},
        {"../x", "the step .."},
        {"a/../b", "entry a/../b: its path has the step .."},
        {"a/..", "the step .."},
        {"./../x", "the step .."},
        {"a/./b", "the step ."},
        {"././a", "the step ."},
        {"a//b", "an empty step"},
        {".//a", "an empty step"},
        {"a/", "an empty step"},
        {"", "byte 0 of the archive: it has no name"},
        {".", "no name"},
        {"./", "no name"},
        {"x\033[2J/../y", "entry x\\x1b[2J/../y: "},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        add_entry(&a, TAR_FILE, rows[i].path, "");
        refused(PALE_BAD_INPUT, rows[i].words);
        if (!rows[i].path[0])
            continue;
        add_record(&a, "path", rows[i].path);
        add_entry(&a, TAR_LINK, "l", "");
        poke(&a, 157, "target", 6);
        refused(PALE_BAD_INPUT, rows[i].words);
    }
    add_entry(&a, TAR_FOLDER, ".//", "");
    refused(PALE_BAD_INPUT, "an empty step");
    add_entry(&a, TAR_FOLDER, "a//", "");
    refused(PALE_BAD_INPUT, "an empty step");
    add_entry(&a, TAR_FOLDER, "/", "");
    refused(PALE_BAD_INPUT, "absolute");
}

static void what_is_no_file_folder_or_symlink_is_refused(void **state)
{
    (void)state;
    static const struct {
        char type;
        const char *words;
    } rows[] = {{'1', "entry x: it is a hard link"},
                {'3', "a device"},
                {'4', "a device"},
                {'6', "a FIFO"},
                {'S', "sparse"},
                {'7', "type 0x37"},
                {'V', "type 0x56"},
                {'\n', "type 0x0a"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        add_entry(&a, rows[i].type, "x", "");
        refused(PALE_BAD_INPUT, rows[i].words);
    }
    add_record(&a, "GNU.sparse.major", "1");
    add_entry(&a, TAR_FILE, "x", "");
    refused(PALE_BAD_INPUT, "sparse");
    add_entry(&a, TAR_FOLDER, "x", "content");
    refused(PALE_BAD_INPUT, "it has content and is no file");
    add_entry(&a, TAR_LINK, "x", "");
    refused(PALE_BAD_INPUT, "a symlink to nothing");
    add_head(&a, TAR_FILE, "x", "", 0);
    poke(&a, 257, "\0\0\0\0\0\0\0", 8);
    refused(PALE_BAD_INPUT, "neither ustar");
}

static void every_changed_byte_of_a_header_is_seen(void **state)
{
    (void)state;
    for (size_t i = 0; i < TAR_BLOCK; i++) {
        add_head(&a, TAR_FILE, "f", "", 0);
        a.at[i] ^= 1;
        refused(PALE_BAD_INPUT, "byte 0 of the archive: this is no tar header");
    }
    add_entry(&a, TAR_FILE, "f", "content");
    add(&a, "\037\213", 2);
    add_zeros(&a, 510);
    refused(PALE_BAD_INPUT, "byte 1024 of the archive: this is no tar header");
}

static void limits_hold_and_no_more(void **state)
{
    (void)state;
    char path[PATH_BYTES_MAX + 1], number[32];
    memset(path, 'n', sizeof(path));
    path[BUNDLE_NAME_MAX] = 0;
    add_record(&a, "path", path);
    add_entry(&a, TAR_FILE, "f", "");
    assert_int_equal(first_head().name_len, BUNDLE_NAME_MAX);
    path[BUNDLE_NAME_MAX] = 'n';
    path[BUNDLE_NAME_MAX + 1] = 0;
    add_record(&a, "path", path);
    add_entry(&a, TAR_FILE, "f", "");
    refused(PALE_LIMIT, "its name is longer than 255 bytes");

    for (int i = 0; i < BUNDLE_DEPTH_MAX; i++)
        memcpy(path + 2 * i, "d/", 3);
    add_record(&a, "path", path);
    add_entry(&a, TAR_FOLDER, "f", "");
    refused(PALE_LIMIT, "it lies deeper than 128 folders");
    add_record(&a, "path", path + 2);
    add_entry(&a, TAR_FOLDER, "f", "");
    told();
    path[2 * BUNDLE_DEPTH_MAX - 1] = 0;
    add_record(&a, "path", path);
    add_entry(&a, TAR_FILE, "f", "");
    told();

    snprintf(number, sizeof(number), "%llu", TAR_FILE_MAX + 1);
    add_record(&a, "size", number);
    add_entry(&a, TAR_FILE, "f", "");
    refused(PALE_LIMIT, "it is larger than 1099511627776 bytes");
    snprintf(number, sizeof(number), "%llu", TAR_FILE_MAX);
    add_record(&a, "size", number);
    add_entry(&a, TAR_FILE, "f", "");
    refused(PALE_BAD_INPUT, "ended early");
    add_head(&a, TAR_PAX, "f", "", TAR_EXTRA_MAX + 1);
    refused(PALE_LIMIT, "a header is longer");
}

static void nothing_follows_the_end_but_zeros(void **state)
{
    (void)state;
    add_entry(&a, TAR_FILE, "f", "");
    add_end(&a);
    add_zeros(&a, 10000);
    assert_string_equal(told(), "top 755{f 644=;}.");
    add_end(&a);
    add_zeros(&a, 100);
    add(&a, "x", 1);
    refused(PALE_BAD_INPUT, "followed by something");
    add_zeros(&a, TAR_BLOCK);
    add_entry(&a, TAR_FILE, "f", "");
    refused(PALE_BAD_INPUT, "entry f: it comes after a block of zeros");
    add_zeros(&a, TAR_BLOCK);
    assert_int_equal(carry_whole(UNTAR, &a)->result, -PALE_BAD_INPUT);
    a.n = 0;
    assert_int_equal(carry_whole(UNTAR, &a)->result, -PALE_BAD_INPUT);
    add_record(&a, "path", "p");
    refused(PALE_BAD_INPUT, "the end comes after a header that belongs to an entry");
}

#define CASE(f) cmocka_unit_test_setup(f, empty)
TESTS(CASE(archives_of_others_are_taken), CASE(pieces_of_every_size_come_to_the_same), CASE(every_prefix_needs_more),
      CASE(folders_are_left_and_entered), CASE(the_top_is_a_folder_that_may_be_announced), CASE(one_name_may_come_again),
      CASE(pax_records_say_more), CASE(what_was_said_of_one_entry_is_not_of_the_next), CASE(numbers_as_others_write_them_are_read),
      CASE(numbers_that_are_none_are_refused), CASE(paths_that_lead_elsewhere_are_refused),
      CASE(what_is_no_file_folder_or_symlink_is_refused), CASE(every_changed_byte_of_a_header_is_seen), CASE(limits_hold_and_no_more),
      CASE(nothing_follows_the_end_but_zeros))
