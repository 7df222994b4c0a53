/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for box/standing. */
#include "base/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "box/standing.h"

static struct standing_list list;

static bool reads(const char *text)
{
    return standing_parse(text, strlen(text), &list);
}

static void lists_round_trip(void **state)
{
    static const char text[] = "allow good.test 443 0\ndeny 10.0.0.5 80 1794829855\nallow fd00::1 22 7\n";
    own_buf out = {0};
    (void)state;
    assert_true(reads(text));
    assert_int_equal(list.count, 3);
    assert_false(list.item[1].allow);
    assert_int_equal(list.item[1].until_unix, 1794829855);
    buf_init(&out, 4096);
    standing_write(&list, &out);
    assert_string_equal(buf_text(&out), text);
    assert_true(reads(""));
    assert_int_equal(list.count, 0);
}

static void lists_refuse_what_is_no_answer(void **state)
{
    static const char *const bad[] = {
        "allow good.test 443 0", /* no end of line */
        "allow *.test 443 0\n",
        "allow Good.test 443 0\n",
        "allow good.test. 443 0\n",
        "allow 10.0.0.0/8 80 0\n",
        "allow 10.1 80 0\n",
        "allow good.test 0 0\n",
        "allow good.test 65536 0\n",
        "allow good.test 80 -1\n",
        "allow good.test 80\n",
        "allow good.test 80 0 0\n",
        "ask good.test 80 0\n",
        "allow  good.test 80 0\n",
        "\n",
        "allow good.test 80 0\n\n",
        "allow fd00:0::1 80 0\n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(reads(bad[i]));
    assert_false(standing_parse("allow a\0b.test 80 0\n", 20, &list));
}

static void lists_refuse_every_prefix_that_ends_within_a_line(void **state)
{
    static const char text[] = "allow good.test 443 0\ndeny other.test 80 0\n";
    (void)state;
    for (size_t n = 0; n < sizeof(text) - 1; n++)
        assert_int_equal(standing_parse(text, n, &list), n == 0 || text[n - 1] == '\n');
}

static void lists_refuse_more_than_their_maximum(void **state)
{
    own_buf text = {0};
    (void)state;
    buf_init(&text, 1 << 20);
    for (unsigned i = 0; i < STANDING_MAX; i++)
        buf_addf(&text, "allow n%u.test 80 0\n", i);
    assert_true(standing_parse(buf_text(&text), text.len, &list));
    buf_add_text(&text, "allow more.test 80 0\n");
    assert_false(standing_parse(buf_text(&text), text.len, &list));
}

/* --- on the disk --- */

static char folder[64];

static int begin(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/standing-test-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int end(void **state)
{
    char path[128];
    static const char *const names[] = {"approvals", "approvals.lock"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        (void)unlink(path);
    }
    return rmdir(folder);
}

static struct standing_path where(void)
{
    struct standing_path p = {.name = "approvals"};
    snprintf(p.dir, sizeof(p.dir), "%s", folder);
    return p;
}

static struct standing answer(bool allow, const char *host, uint16_t port, uint64_t until)
{
    struct standing s = {.allow = allow, .port = port, .until_unix = until};
    snprintf(s.host, sizeof(s.host), "%s", host);
    return s;
}

static void a_new_answer_takes_the_place_of_an_old_one_and_of_those_that_have_expired(void **state)
{
    struct pale_err e;
    const struct standing_path p = where();
    const struct standing first = answer(true, "a.test", 80, 0), gone = answer(true, "b.test", 80, 50),
                          other = answer(true, "a.test", 81, 0), second = answer(false, "a.test", 80, 200);
    (void)state;
    assert_int_equal(standing_read(&p, &list, &e), 0);
    assert_int_equal(list.count, 0);
    assert_int_equal(standing_add(&p, &first, 10, &e), 0);
    assert_int_equal(standing_add(&p, &gone, 10, &e), 0);
    assert_int_equal(standing_add(&p, &other, 10, &e), 0);
    assert_int_equal(standing_add(&p, &second, 50, &e), 0);
    assert_int_equal(standing_read(&p, &list, &e), 0);
    assert_int_equal(list.count, 2);
    assert_int_equal(list.item[0].port, 81);
    assert_false(list.item[1].allow);
}

static void what_stands_is_gathered_until_it_expires(void **state)
{
    struct pale_err e;
    const struct standing_path p = where();
    const struct standing one = answer(true, "a.test", 80, 100), two = answer(true, "b.test", 80, 60),
                          three = answer(false, "c.test", 80, 0);
    struct policy policy = {0};
    const struct standing_of of = {.state = folder, .tenant = "t", .policy = &policy};
    struct standing got[8];
    uint64_t next;
    (void)state;
    assert_int_equal(standing_add(&p, &one, 1, &e), 0);
    assert_int_equal(standing_add(&p, &two, 1, &e), 0);
    assert_int_equal(standing_add(&p, &three, 1, &e), 0);
    assert_int_equal(standing_gather(&of, 10, got, 8, &next, NULL, NULL), 3);
    assert_int_equal(next, 60);
    assert_int_equal(standing_gather(&of, 60, got, 8, &next, NULL, NULL), 2);
    assert_int_equal(next, 100);
    assert_int_equal(standing_gather(&of, 100, got, 8, &next, NULL, NULL), 1);
    assert_int_equal(next, 0);
    assert_int_equal(standing_gather(&of, 10, got, 2, &next, NULL, NULL), 2);
}

static void a_list_behind_a_link_is_not_read(void **state)
{
    struct pale_err e;
    const struct standing_path p = where();
    char path[128];
    (void)state;
    snprintf(path, sizeof(path), "%s/approvals", folder);
    assert_int_equal(symlink("/etc/passwd", path), 0);
    assert_true(standing_read(&p, &list, &e) < 0);
}

static void scopes_have_lists_of_their_own(void **state)
{
    struct pale_err e;
    struct policy policy = {.project = PROJECT_RO, .project_path = (char *)"/src/one"};
    struct standing_path box, project, inside, always;
    struct standing_of of = {.data = "/home/x/.local/share/pale/boxes/b", .state = "/state/b", .tenant = "", .policy = &policy};
    (void)state;
    setenv("XDG_CONFIG_HOME", folder, 1);
    assert_int_equal(standing_find(&of, APPLIES_BOX, false, &box, &e), 0);
    assert_string_equal(box.dir, "/state/b");
    assert_int_equal(standing_find(&of, APPLIES_PROJECT, false, &project, &e), -PALE_NOT_FOUND);
    policy.project = PROJECT_NONE;
    of.data = "/src/one/.pale/b";
    assert_int_equal(standing_find(&of, APPLIES_PROJECT, false, &inside, &e), -PALE_NOT_FOUND);
    assert_string_equal(inside.name, project.name);
    assert_int_equal(standing_find(&of, APPLIES_ALWAYS, false, &always, &e), -PALE_NOT_FOUND);
    assert_string_not_equal(always.name, project.name);
    of.data = "/.pale/b";
    assert_int_equal(standing_find(&of, APPLIES_PROJECT, false, &project, &e), -PALE_BAD_INPUT);
    of.tenant = "t";
    assert_int_equal(standing_find(&of, APPLIES_ALWAYS, false, &always, &e), -PALE_BAD_INPUT);
    assert_int_equal(standing_find(&of, APPLIES_ONCE, false, &always, &e), -PALE_BAD_INPUT);
}

#define ON_DISK(f) cmocka_unit_test_setup_teardown(f, begin, end)

TESTS(cmocka_unit_test(lists_round_trip), cmocka_unit_test(lists_refuse_what_is_no_answer),
      cmocka_unit_test(lists_refuse_every_prefix_that_ends_within_a_line), cmocka_unit_test(lists_refuse_more_than_their_maximum),
      ON_DISK(a_new_answer_takes_the_place_of_an_old_one_and_of_those_that_have_expired), ON_DISK(what_stands_is_gathered_until_it_expires),
      ON_DISK(a_list_behind_a_link_is_not_read), ON_DISK(scopes_have_lists_of_their_own))
