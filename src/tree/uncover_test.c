/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for tree/uncover, and for welding without some paths: what is left of a layer shows the base there, and itself everywhere else. */
#include "tree/treetest.h"

#include <string.h>

#include "tree/compare.h"
#include "tree/uncover.h"
#include "tree/weld.h"

/* The differences between the base and a layer over it, one after another. */
struct told {
    char text[1024];
};

static int tell(void *arg, const struct compare_record *r, struct pale_err *e)
{
    struct told *t = arg;
    size_t n = strlen(t->text);
    (void)e;
    snprintf(t->text + n, sizeof(t->text) - n, "%s%s %s", n ? ", " : "", compare_word(r->what), r->path);
    return 0;
}

static void assert_differences(int base, int layer, const char *want)
{
    struct pale_err e = {0};
    struct told t = {0};
    struct view was = {.base_fd = base}, is = {.base_fd = base, .layer_fds = &layer, .layer_count = 1};
    struct compare c = {.was_view = &was, .is_view = &is, .tell = tell, .arg = &t};
    assert_ok(compare_run(&c, &e));
    assert_string_equal(t.text, want);
}

/* Welds "layer" without the paths, sorted, and uncovers them. */
static void throw_away(const char *const *paths, size_t count, const char *want)
{
    struct pale_err e = {0};
    own_fd base = folder("base"), layer = folder("layer"), to = folder("to");
    int fds[] = {layer};
    assert_ok(weld_without(fds, 1, paths, count, to, &e));
    for (size_t i = 0; i < count; i++)
        assert_ok(uncover_path(base, to, paths[i], &e));
    assert_differences(base, to, want);
}
#define THROW_AWAY(want, ...)                                                                                                              \
    throw_away((const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *), want)

static void weld_leaves_out_files_folders_and_whiteouts(void **state)
{
    (void)state;
    put("base/a", "a");
    put("base/b", "b");
    put("base/gone", "x");
    put("base/gone-too", "x");
    put("base/dir/old", "x");
    put("layer/a", "other");
    put("layer/b", "other");
    put("layer/new/deep/er", "x");
    put("layer/new/deep/est", "x");
    put("layer/dir/old", "other");
    put_whiteout("layer/gone");
    put_whiteout("layer/gone-too");
    THROW_AWAY("changed b, deleted gone-too, added new, added new/deep, added new/deep/est", "a", "dir", "gone", "new/deep/er");
}

static void a_file_of_a_deleted_folder_is_shown_alone(void **state)
{
    (void)state;
    put("base/dir/a", "a");
    put("base/dir/b", "b");
    put("base/dir/sub/c", "c");
    put_whiteout("layer/dir");
    THROW_AWAY("deleted dir/b, deleted dir/sub, deleted dir/sub/c", "dir/a");
}

static void several_paths_of_a_deleted_folder_are_shown(void **state)
{
    (void)state;
    put("base/dir/a", "a");
    put("base/dir/b", "b");
    put("base/dir/sub/c", "c");
    put("base/dir/sub/d", "d");
    put_whiteout("layer/dir");
    THROW_AWAY("deleted dir/b, deleted dir/sub/d", "dir/a", "dir/sub/c");
}

static void a_path_within_another_changes_nothing_more(void **state)
{
    (void)state;
    put("base/dir/a", "a");
    put("base/dir/sub/c", "c");
    put("base/other", "x");
    put_whiteout("layer/dir");
    put_whiteout("layer/other");
    THROW_AWAY("deleted other", "dir", "dir/sub/c");
}

static void a_folder_made_anew_stays_so_but_for_the_path(void **state)
{
    (void)state;
    put("base/dir/a", "a");
    put("base/dir/b", "b");
    put("base/dir/c", "c");
    put("base/dir/sub/x", "x");
    put("base/dir/sub/y", "y");
    put("base/dir/way/here", "x");
    put("base/dir/way/there", "x");
    put("layer/dir/b", "other");
    put("layer/dir/c", "other");
    put("layer/dir/sub/x", "other");
    put("layer/dir/way/new", "new");
    put("layer/dir/added", "added");
    set_attribute("layer/dir", "user.overlay.opaque", "y");
    THROW_AWAY(
        "deleted dir/a, added dir/added, changed dir/b, changed dir/sub/x, deleted dir/sub/y, added dir/way/new, deleted dir/way/there",
        "dir/c", "dir/way/here");
}

static void what_the_base_never_had_uncovers_nothing(void **state)
{
    (void)state;
    put("base/dir/a", "a");
    put("base/file", "x");
    put("layer/dir/new", "x");
    put("layer/dir/newer", "x");
    set_attribute("layer/dir", "user.overlay.opaque", "y");
    put("layer/file/in", "x");
    set_attribute("layer/file", "user.overlay.opaque", "y");
    THROW_AWAY("deleted dir/a, added dir/newer, type file", "dir/new", "file/in");
}

static void folders_closed_to_their_owner_are_opened_and_closed_again(void **state)
{
    (void)state;
    struct stat st;
    put("base/dir/a", "a");
    put("base/dir/sub/x", "x");
    put("layer/dir/sub/y", "y");
    set_attribute("layer/dir", "user.overlay.opaque", "y");
    assert_int_equal(fchmodat(top_fd, "layer/dir/sub", 0500, 0), 0);
    assert_int_equal(fchmodat(top_fd, "layer/dir", 0500, 0), 0);
    THROW_AWAY("mode dir, mode dir/sub, deleted dir/sub/x, added dir/sub/y", "dir/a");
    assert_int_equal(fstatat(top_fd, "to/dir", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0500);
    assert_int_equal(fstatat(top_fd, "to/dir/sub", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0500);
}

static void a_file_where_a_folder_was_is_refused(void **state)
{
    (void)state;
    struct pale_err e = {0};
    put("base/dir/a", "a");
    put("layer/dir", "a file now");
    own_fd base = folder("base"), layer = folder("layer");
    assert_int_equal(uncover_path(base, layer, "dir/a", &e), -PALE_BAD_INPUT);
    assert_non_null(strstr(e.text, "dir is no folder"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(weld_leaves_out_files_folders_and_whiteouts),
        CASE(a_file_of_a_deleted_folder_is_shown_alone),
        CASE(several_paths_of_a_deleted_folder_are_shown),
        CASE(a_path_within_another_changes_nothing_more),
        CASE(a_folder_made_anew_stays_so_but_for_the_path),
        CASE(what_the_base_never_had_uncovers_nothing),
        CASE(folders_closed_to_their_owner_are_opened_and_closed_again),
        CASE(a_file_where_a_folder_was_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
