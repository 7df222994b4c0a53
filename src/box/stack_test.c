/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for box/stack. */
#include "base/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "box/stack.h"

/* Of a box that has written nothing but its first layer, whose name is its id. */
static void begin(struct stack *s)
{
    stack_init(s);
    memset(s->box, '0', BOX_ID_LEN);
    memset(s->open, '0', LAYER_ID_LEN);
}

/* Closes the open layer and opens the next of a row of ids. */
static int close_next(struct stack *s, unsigned number)
{
    char id[LAYER_ID_LEN + 1];
    int layer = STACK_NONE;
    struct pale_err e = {0};
    snprintf(id, sizeof(id), "%032x", number);
    assert_int_equal(stack_close(s, id, number, &layer, &e), 0);
    return layer;
}

static void assert_chain(const struct stack *s, int layer, const char *want)
{
    const char *ids[64];
    char text[1024] = "";
    size_t n = stack_chain(s, layer, ids);
    for (size_t i = 0; i < n; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", i ? " " : "", ids[i] + LAYER_ID_LEN - 2);
    assert_string_equal(text, want);
}

static void a_stack_that_nobody_wrote_has_one_open_layer(void **state)
{
    own_stack s = {0};
    (void)state;
    begin(&s);
    assert_int_equal(s.below_open, STACK_NONE);
    assert_chain(&s, s.below_open, "");
}

static void a_layer_lies_on_those_closed_before_it(void **state)
{
    own_stack s = {0};
    (void)state;
    begin(&s);
    close_next(&s, 1);
    int middle = close_next(&s, 2), top = close_next(&s, 3);
    assert_chain(&s, top, "00 01 02");
    assert_chain(&s, middle, "00 01");
    s.below_open = middle; /* as a restore leaves it */
    int branch = close_next(&s, 4);
    assert_chain(&s, branch, "00 01 03");
    assert_chain(&s, top, "00 01 02");
}

static void a_run_is_taken_joined(void **state)
{
    own_stack s = {0};
    struct pale_err e = {0};
    (void)state;
    begin(&s);
    for (unsigned i = 1; i < 8; i++)
        close_next(&s, i);
    struct stack_join j = {.id = "000000000000000000000000000000aa", .first = 1, .last = 3},
                      all = {.id = "000000000000000000000000000000bb", .first = 0, .last = 5};
    assert_int_equal(stack_add_join(&s, &j, &e), 0);
    assert_chain(&s, 6, "00 aa 04 05 06");
    assert_chain(&s, 2, "00 01 02");
    assert_int_equal(stack_add_join(&s, &all, &e), 0);
    assert_chain(&s, 6, "bb 06");
    assert_chain(&s, 4, "00 aa 04");
}

static void a_project_begins_anew(void **state)
{
    own_stack s = {0};
    (void)state;
    begin(&s);
    for (unsigned i = 1; i < 4; i++)
        close_next(&s, i);
    assert_int_equal(stack_project_from(&s, 2), 0);
    assert_int_equal(stack_project_since(&s, 2), 0);
    s.open_anew = true;
    close_next(&s, 4);
    assert_false(s.open_anew);
    int top = close_next(&s, 5);
    assert_int_equal(stack_project_from(&s, top), 3);
    assert_int_equal(stack_project_since(&s, top), 3);
    assert_int_equal(stack_project_from(&s, 2), 0);
}

static void what_is_left_of_a_project_began_when_that_did(void **state)
{
    own_stack s = {0}, read = {0};
    struct pale_err e = {0};
    own_buf text = {0};
    (void)state;
    begin(&s);
    stack_init(&read);
    close_next(&s, 1);
    s.open_anew = true;
    close_next(&s, 2);
    int top = close_next(&s, 3);
    struct stack_layer l = {.id = "000000000000000000000000000000cc", .below = top, .closed_ms = 4, .anew = true, .rest = true};
    s.below_open = top = stack_add_layer(&s, &l, &e);
    assert_int_equal(stack_project_from(&s, top), 3);
    assert_int_equal(stack_project_since(&s, top), 1);
    buf_init(&text, 4096);
    stack_write(&s, &text);
    assert_int_equal(stack_parse(buf_text(&text), text.len, &read, &e), 0);
    assert_int_equal(stack_project_from(&read, top), 3);
    assert_int_equal(stack_project_since(&read, top), 1);
}

static void a_joined_run_counts_for_a_project_that_begins_within_it(void **state)
{
    own_stack s = {0};
    struct pale_err e = {0};
    (void)state;
    begin(&s);
    for (unsigned i = 1; i < 8; i++) {
        s.open_anew = i == 4;
        close_next(&s, i);
    }
    struct stack_join j = {.id = "000000000000000000000000000000aa", .first = 2, .last = 5};
    assert_int_equal(stack_project_from(&s, 6), 3);
    assert_int_equal(stack_add_join(&s, &j, &e), 0);
    assert_chain(&s, 6, "00 01 aa 06");
    assert_int_equal(stack_project_from(&s, 6), 2);
    assert_int_equal(stack_project_since(&s, 6), 3);
    assert_int_equal(stack_project_from(&s, 2), 0);
}

static void names_are_given_once(void **state)
{
    own_stack s = {0};
    struct pale_err e = {0};
    (void)state;
    begin(&s);
    assert_int_equal(stack_add_snapshot(&s, "good", STACK_NONE, 1, false, &e), 0);
    assert_int_equal(stack_add_snapshot(&s, "good", STACK_NONE, 1, false, &e), -PALE_EXISTS);
    static const char *const bad[] = {"-x",  ".x", "a/b",  "a b",
                                      "a\n", "é",  "../x", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(stack_add_snapshot(&s, bad[i], STACK_NONE, 1, false, &e), -PALE_BAD_INPUT);
    assert_int_equal(stack_add_snapshot(&s, "snap-1", STACK_NONE, 1, false, &e), 0);
    assert_int_equal(stack_add_snapshot(&s, NULL, STACK_NONE, 1, false, &e), 0);
    assert_non_null(stack_find(&s, "snap-2"));
    assert_true(stack_remove_snapshot(&s, "good"));
    assert_false(stack_remove_snapshot(&s, "good"));
    assert_non_null(stack_find(&s, "snap-1"));
}

static void fill(struct stack *s)
{
    struct pale_err e = {0};
    begin(s);
    for (unsigned i = 1; i < 6; i++)
        close_next(s, i);
    struct stack_join j = {.id = "000000000000000000000000000000aa", .first = 1, .last = 3};
    assert_int_equal(stack_add_join(s, &j, &e), 0);
    assert_int_equal(stack_add_snapshot(s, "one", 1, 7, false, &e), 0);
    assert_int_equal(stack_add_snapshot(s, NULL, STACK_NONE, 8, true, &e), 0);
    memset(s->layers[2].digest, 'a', SHA256_HEX - 1);
    snprintf(s->layers[3].poison, sizeof(s->layers[3].poison), "setuid");
    s->no_autosave = true;
}

static void what_is_written_is_read(void **state)
{
    own_stack s = {0}, again = {0};
    own_buf text = {0}, twice = {0};
    struct pale_err e = {0};
    (void)state;
    buf_init(&text, 65536);
    buf_init(&twice, 65536);
    fill(&s);
    stack_write(&s, &text);
    assert_int_equal(stack_parse(buf_text(&text), text.len, &again, &e), 0);
    stack_write(&again, &twice);
    assert_string_equal(buf_text(&text), buf_text(&twice));
    assert_chain(&again, again.below_open, "00 aa 04");
}

static void no_beginning_of_it_is_read(void **state)
{
    own_stack s = {0};
    own_buf text = {0};
    struct pale_err e = {0};
    (void)state;
    buf_init(&text, 65536);
    fill(&s);
    stack_write(&s, &text);
    for (size_t n = 0; n < text.len; n++) {
        own_stack cut = {0};
        assert_int_equal(stack_parse(buf_text(&text), n, &cut, &e), -PALE_CORRUPT);
    }
}

static void what_cannot_be_is_not_read(void **state)
{
    static const char *const bad[] = {
        "open 00000000000000000000000000000000 - 0 autosave - 00000000000000000000000000000000\nopen 00000000000000000000000000000001 - 0 "
        "autosave - 00000000000000000000000000000000\n",
        "open 00000000000000000000000000000000 00000000000000000000000000000001 0 autosave - 00000000000000000000000000000000\n",
        "layer 00000000000000000000000000000000 00000000000000000000000000000001 1 - - - 00000000000000000000000000000000\nopen "
        "00000000000000000000000000000002 - 0 autosave - 00000000000000000000000000000000\n",
        "layer 00000000000000000000000000000000 - 1 - - - 00000000000000000000000000000000\nlayer 00000000000000000000000000000000 - 1 - - "
        "- 00000000000000000000000000000000\nopen 00000000000000000000000000000002 - 0 autosave - 00000000000000000000000000000000\n",
        "layer 00000000000000000000000000000000 - 1 - - - 00000000000000000000000000000000\nopen 00000000000000000000000000000000 - 0 "
        "autosave - 00000000000000000000000000000000\n",
        "layer ../../000000 - 1 - - - 00000000000000000000000000000000\nopen 00000000000000000000000000000002 - 0 autosave - "
        "00000000000000000000000000000000\n",
        "layer 00000000000000000000000000000000 - 1 - - - 00000000000000000000000000000000\nlayer 00000000000000000000000000000001 - 1 - - "
        "- 00000000000000000000000000000000\njoin 000000000000000000000000000000aa 00000000000000000000000000000000 "
        "00000000000000000000000000000001 00000000000000000000000000000000\nopen 00000000000000000000000000000002 - 0 autosave "
        "00000000000000000000000000000000\n",
        "snapshot a - 1 asked\nlayer 00000000000000000000000000000000 - 1 - - - 00000000000000000000000000000000\nopen "
        "00000000000000000000000000000002 - 0 autosave - 00000000000000000000000000000000\n",
        "snapshot a - 1 asked\nsnapshot a - 1 asked\nopen 00000000000000000000000000000002 - 0 autosave - "
        "00000000000000000000000000000000\n",
        "snapshot a - 1 asked more\nopen 00000000000000000000000000000002 - 0 autosave - 00000000000000000000000000000000\n",
        "open 00000000000000000000000000000000 - -1 autosave - 00000000000000000000000000000000\n",
        "open 00000000000000000000000000000000 - 0 sometimes - 00000000000000000000000000000000\n",
        "open 00000000000000000000000000000000 - 0 autosave yes 00000000000000000000000000000000\n",
        "strange\nopen 00000000000000000000000000000000 - 0 autosave - 00000000000000000000000000000000\n",
        "\nopen 00000000000000000000000000000000 - 0 autosave - 00000000000000000000000000000000\n",
    };
    (void)state;
    own_stack read = {0};
    struct pale_err none = {0};
    static const char good[] = "pale stack 2\nbox 00000000000000000000000000000000\nopen 00000000000000000000000000000000 - 0 autosave - "
                               "00000000000000000000000000000000\n";
    assert_int_equal(stack_parse(good, strlen(good), &read, &none), 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char text[1024];
        own_stack s = {0};
        struct pale_err e = {0};
        snprintf(text, sizeof(text), "pale stack 2\nbox 00000000000000000000000000000000\n%s", bad[i]);
        assert_int_equal(stack_parse(text, strlen(text), &s, &e), -PALE_CORRUPT);
    }
}

/* As long as a list may be: it is read in paled, which has other things to do. */
static void the_longest_list_is_read(void **state)
{
    own_stack s = {0}, again = {0};
    own_buf text = {0};
    struct pale_err e = {0};
    char name[32];
    (void)state;
    buf_init(&text, 4u << 20);
    begin(&s);
    for (unsigned i = 0; i < STACK_LAYERS_MAX; i++)
        close_next(&s, i + 1);
    for (int i = STACK_RUN_MAX - 1; i < STACK_LAYERS_MAX; i++) {
        struct stack_join j = {.first = i - STACK_RUN_MAX + 1, .last = i, .maker = "00000000000000000000000000000000"};
        snprintf(j.id, sizeof(j.id), "f%031x", (unsigned)i);
        assert_int_equal(stack_add_join(&s, &j, &e), 0);
    }
    for (int i = 0; i < STACK_SNAPSHOTS_MAX; i++) {
        snprintf(name, sizeof(name), "name-%d", i);
        assert_int_equal(stack_add_snapshot(&s, name, 2 * i, 1, false, &e), 0);
    }
    stack_write(&s, &text);
    assert_false(text.failed);
    assert_int_equal(stack_parse(buf_text(&text), text.len, &again, &e), 0);
    assert_int_equal(again.layer_count, STACK_LAYERS_MAX);
    assert_int_equal(again.layers[STACK_LAYERS_MAX - 1].below, STACK_LAYERS_MAX - 2);
    assert_int_equal(again.joins[0].last, STACK_RUN_MAX - 1);
    assert_int_equal(again.snapshots[STACK_SNAPSHOTS_MAX - 1].layer, 2 * (STACK_SNAPSHOTS_MAX - 1));
    /* One that reaches over more than may be joined. */
    again.joins[0].last++;
    buf_clear(&text);
    stack_write(&again, &text);
    stack_done(&again);
    assert_int_equal(stack_parse(buf_text(&text), text.len, &again, &e), -PALE_CORRUPT);
}

static void what_nothing_stands_on_is_forgotten(void **state)
{
    own_stack s = {0};
    struct pale_err e = {0};
    (void)state;
    begin(&s);
    for (unsigned i = 1; i < 5; i++)
        close_next(&s, i);
    assert_int_equal(stack_add_snapshot(&s, "low", 1, 1, false, &e), 0);
    assert_int_equal(stack_add_snapshot(&s, "high", 3, 1, false, &e), 0);
    struct stack_join j = {.id = "000000000000000000000000000000aa", .first = 2, .last = 3};
    assert_int_equal(stack_add_join(&s, &j, &e), 0);
    s.below_open = 0;
    close_next(&s, 9); /* 04 on 00 */
    assert_int_equal(stack_prune(&s, &e), 0);
    assert_int_equal(s.layer_count, 5);
    assert_true(stack_remove_snapshot(&s, "high"));
    assert_int_equal(stack_prune(&s, &e), 0);
    assert_int_equal(s.layer_count, 3);
    assert_int_equal(s.join_count, 0);
    assert_chain(&s, stack_find(&s, "low")->layer, "00 01");
    assert_chain(&s, s.below_open, "00 04");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stack_that_nobody_wrote_has_one_open_layer),
        cmocka_unit_test(a_layer_lies_on_those_closed_before_it),
        cmocka_unit_test(a_run_is_taken_joined),
        cmocka_unit_test(a_project_begins_anew),
        cmocka_unit_test(what_is_left_of_a_project_began_when_that_did),
        cmocka_unit_test(a_joined_run_counts_for_a_project_that_begins_within_it),
        cmocka_unit_test(names_are_given_once),
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(no_beginning_of_it_is_read),
        cmocka_unit_test(what_cannot_be_is_not_read),
        cmocka_unit_test(the_longest_list_is_read),
        cmocka_unit_test(what_nothing_stands_on_is_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
