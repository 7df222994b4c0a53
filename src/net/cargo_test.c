/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for net/cargo. */
#include "base/test.h"

#include <stdio.h>

#include "net/cargo.h"

static struct cargo c;
static struct tarpax pax;
static char path[PATH_BYTES_MAX];
static enum cargo_kind kind;
static struct pale_err why;

/* A member by its type and name: "f home/a", "d home/", "l home/a", "h home/a", or any other type. */
static int judge_with(const char *member, const char *link, unsigned set_bits, uint64_t size)
{
    static const char letters[] = "fdlh", types[] = {TAR_FILE, TAR_FOLDER, TAR_LINK, TAR_HARD_LINK};
    const char *at = strchr(letters, member[0]);
    const struct tar_head h = {.type = (uint8_t)(at ? types[at - letters] : member[0]), .set_bits = set_bits};
    const struct cargo_member m = {.head = &h, .pax = &pax, .name = member + 2, .link = link, .size = size};
    return cargo_judge(&c, &m, &kind, path, &why);
}

static int judge(const char *member)
{
    return judge_with(member, member[0] == 'h' ? "home/a" : "x", 0, 0);
}

static void begin(void)
{
    c = (struct cargo){0};
    pax = (struct tarpax){0};
    assert_int_equal(judge("f " CARGO_BILL), 0);
    assert_int_equal(kind, CARGO_IS_BILL);
}

/* All of them in this order; the number of the first that is refused, or -1. */
static int refused(const char *const *members)
{
    begin();
    for (int i = 0; members[i]; i++)
        if (judge(members[i]) < 0)
            return i;
    return cargo_end(&c, &why) < 0 ? 1000 : -1;
}

static void what_an_export_has_is_taken(void **state)
{
    (void)state;
    static const char *const members[] = {"f home/a",        "f home/b/x",
                                          "f home/b/y/z",    "d home/b/y/",
                                          "l home/b/z",      "d home/b/",
                                          "f home/b.c",      "h home/c",
                                          "d home/",         "f project/.wh.gone",
                                          "f project/new/n", "f project/new/.wh..wh..opq",
                                          "d project/new/",  "d project/",
                                          "d root/",         "f tmp/t",
                                          "d tmp/",          NULL};
    assert_int_equal(refused(members), -1);
    assert_int_equal(refused((const char *const[]){NULL}), -1);
}

static void marks_are_told_with_the_path_they_mean(void **state)
{
    (void)state;
    char name[400] = "f project/d/.wh.";
    begin();
    memset(name + strlen(name), 'n', 255);
    assert_int_equal(judge(name), 0);
    assert_int_equal(kind, CARGO_IS_GONE);
    assert_int_equal(strlen(path), strlen("project/d/") + 255);
    assert_int_equal(judge("f project/d/.wh..wh..opq"), 0);
    assert_int_equal(kind, CARGO_IS_OPAQUE);
    assert_string_equal(path, "project/d");
    assert_int_equal(judge("d project/d/"), 0);
    assert_string_equal(path, "project/d");
}

static void what_does_not_begin_as_an_export_is_none(void **state)
{
    (void)state;
    static const char *const rows[] = {"f home/a", "d " CARGO_BILL, "l " CARGO_BILL, "f ./" CARGO_BILL, "f x", "d home/"};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        c = (struct cargo){0};
        pax = (struct tarpax){0};
        assert_int_equal(judge(rows[i]), -PALE_BAD_INPUT);
    }
    c = (struct cargo){0};
    assert_int_equal(judge_with("f " CARGO_BILL, "", 0, WAYBILL_BYTES_MAX), 0);
    c = (struct cargo){0};
    assert_int_equal(judge_with("f " CARGO_BILL, "", 0, WAYBILL_BYTES_MAX + 1), -PALE_LIMIT);
    c = (struct cargo){0};
    assert_true(cargo_end(&c, &why) < 0);
}

static void whatever_no_export_has_is_refused(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "3 home/dev",
        "4 home/dev",
        "6 home/pipe",
        "S home/sparse",
        "g home/global",
        "L home/long",
        "7 home/x",
        "f /etc/passwd",
        "f home/../x",
        "f home/./x",
        "f home//x",
        "f ../x",
        "f home",
        "f x/y",
        "d x/",
        "f marks",
        "f work/x",
        "f homes/x",
        "f " CARGO_BILL,
        "d ./",
        "f home/.wh.gone",
        "f tmp/.wh..wh..opq",
        "f .wh.home",
        "d project/.wh.x/",
        "l project/.wh.x",
        "f project/.wh.",
        "f project/.wh..",
        "f project/.wh...",
        "f project/.wh..wh.x",
        "f project/.wh.x/y",
        "f project/.wh..wh..opq",
        "f .wh..wh..opq",
        "h project/a",
        "l home",
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        begin();
        if (judge(rows[i]) == 0)
            fail_msg("%s was taken", rows[i]);
        assert_true(why.text[0]);
    }
}

static void what_is_out_of_order_or_twice_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *members[8];
        int at;
    } rows[] = {
        {{"f home/a", "f home/a"}, 1},
        {{"f home/a", "d home/a/"}, 1},
        {{"f home/b", "f home/a"}, 1},
        {{"f home/a", "l home/a"}, 1},
        {{"f home/d/x", "d home/d/", "f home/d/y"}, 2},
        {{"f home/d/x", "d home/d/", "d home/d/"}, 2},
        {{"d home/", "f home/a"}, 1},
        {{"d home/", "d home/"}, 1},
        {{"f home/d/x", "f home/e"}, 1}, /* the folder d never came */
        {{"f home/d/e/x", "d home/d/"}, 1},
        {{"f home/d/x", "f home/d"}, 1},
        {{"f home/a", "d project/"}, 1},
        {{"d tmp/", "d home/"}, 1},
        {{"f project/.wh.a", "f project/a"}, 1},
        {{"f project/a", "f project/.wh.a"}, 1},
        {{"f project/b", "f project/.wh.a"}, 1},
        {{"f project/d/.wh..wh..opq", "f project/d/x"}, 1},
        {{"f project/d/.wh..wh..opq", "f project/d"}, 1},
        {{"f project/d/.wh..wh..opq", "d project/e/"}, 1},
        {{"f project/d/.wh..wh..opq", "f project/d/.wh..wh..opq"}, 1},
        {{"f project/d/.wh..wh..opq"}, 1000},
        {{"f home/a"}, 1000},
        {{"f home/d/x", "d home/d/"}, 1000},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(refused(rows[i].members), rows[i].at);
}

static void bits_and_additions_are_refused(void **state)
{
    (void)state;
    begin();
    assert_true(judge_with("f home/a", "", 04000, 0) < 0 && judge_with("f home/a", "", 02000, 0) < 0);
    assert_true(judge_with("f home/a", "", 01000, 0) < 0 && judge_with("d home/a/", "", 04000, 0) < 0);
    assert_true(judge_with("d home/a/", "", 02000, 0) < 0 && judge_with("d home/a/", "", 0, 1) < 0);
    assert_true(judge_with("f project/.wh.a", "", 0, 1) < 0 && judge_with("l home/a", "", 0, 0) < 0);
    pax.has_attributes = true;
    assert_true(judge("f home/a") < 0);
    static struct tarpax_attributes attributes;
    pax.attributes = &attributes;
    assert_true(judge("l home/a") < 0 && judge("h home/b") < 0 && judge("f project/.wh.a") < 0 && judge("d home/") < 0);
    assert_int_equal(judge("f home/a"), 0);
    begin();
    pax = (struct tarpax){.has_other = true};
    assert_true(judge("f home/a") < 0);
    pax = (struct tarpax){0};
    assert_int_equal(judge_with("d home/a/", "", 01000, 0), 0);
}

static void a_hard_link_leads_into_its_own_part(void **state)
{
    (void)state;
    static const char *const bad[] = {"project/a", "home", CARGO_BILL, "marks", "/etc/passwd", "home/../x", "../home/a", ""};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        begin();
        assert_true(judge_with("h home/b", bad[i], 0, 0) < 0);
    }
    begin();
    assert_int_equal(judge_with("h home/b", "home/a", 0, 0), 0);
    assert_string_equal(c.target, "home/a");
}

TESTS(cmocka_unit_test(what_an_export_has_is_taken), cmocka_unit_test(marks_are_told_with_the_path_they_mean),
      cmocka_unit_test(what_does_not_begin_as_an_export_is_none), cmocka_unit_test(whatever_no_export_has_is_refused),
      cmocka_unit_test(what_is_out_of_order_or_twice_is_refused), cmocka_unit_test(bits_and_additions_are_refused),
      cmocka_unit_test(a_hard_link_leads_into_its_own_part))
