/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for tree/leaf, tree/listing, tree/view and tree/compare. */
#include "tree/treetest.h"

#include <errno.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <time.h>

#include "tree/compare.h"
#include "tree/roster.h"

static struct buf told; /* of the last comparison: "added a/b;" … */
static unsigned told_count;

static int note(void *arg, const struct compare_record *r, struct pale_err *e)
{
    (void)arg;
    (void)e;
    told_count++;
    buf_addf(&told, "%s%s %s;", r->leaving ? "left " : "", compare_word(r->what), r->path);
    return 0;
}

static const char *tell(const struct view *was, const struct view *is, const char *under, bool leaving)
{
    struct pale_err e = {0};
    struct compare c = {.was_view = was, .is_view = is, .under = under, .tell_leaving = leaving, .tell = note};
    buf_done(&told);
    buf_init(&told, 1 << 24);
    told_count = 0;
    if (compare_run(&c, &e) < 0)
        return e.text[0] ? "failed" : "failed without a word";
    return buf_text(&told);
}

/* base against base and one layer, both of these names in the scratch folder. */
static const char *tell_layer(void)
{
    own_fd base = folder("base"), layer = folder("layer");
    struct view was = {.base_fd = base}, is = {.base_fd = base, .layer_fds = &layer, .layer_count = 1};
    return tell(&was, &is, NULL, false);
}

static void every_difference_is_told_in_order(void **state)
{
    (void)state;
    put("base/same", "x");
    put("base/changed", "old");
    put("base/gone", "x");
    put("base/mode", "x");
    put("base/a/deep", "x");
    put_link("base/link", "here");
    put("base/type", "x");
    put("layer/same", "x");
    put("layer/changed", "new");
    put_whiteout("layer/gone");
    put_bytes("layer/mode", "x", 1, 0755);
    put("layer/a/new", "x");
    put_link("layer/link", "there");
    put_link("layer/type", "elsewhere");
    assert_string_equal(tell_layer(), "added a/new;changed changed;deleted gone;link link;mode mode;type type;");
}

static void folder_that_is_gone_tells_each_file_in_it(void **state)
{
    (void)state;
    own_fd base = folder("base"), layer = folder("layer");
    struct view was = {.base_fd = base}, is = {.base_fd = base, .layer_fds = &layer, .layer_count = 1};
    put("base/d/a", "x");
    put("base/d/e/b", "x");
    put("base/keep", "x");
    put_whiteout("layer/d");
    assert_string_equal(tell(&was, &is, NULL, true), "deleted d;deleted d/a;deleted d/e;deleted d/e/b;left deleted d/e;left deleted d;");
    assert_string_equal(tell(&is, &was, NULL, false), "added d;added d/a;added d/e;added d/e/b;");
}

static void opaque_folder_hides_what_is_below(void **state)
{
    (void)state;
    put("base/d/a", "x");
    put("base/d/b", "x");
    put("layer/d/b", "x");
    put("layer/d/c", "x");
    set_attribute("layer/d", "user.overlay.opaque", "y");
    assert_string_equal(tell_layer(), "deleted d/a;added d/c;");
}

static void empty_file_is_a_whiteout_only_where_its_folder_says_so(void **state)
{
    (void)state;
    put("base/d/a", "x");
    put("base/e/a", "x");
    put("layer/d/a", "");
    put("layer/e/a", "");
    set_attribute("layer/d/a", "user.overlay.whiteout", "y");
    set_attribute("layer/e/a", "user.overlay.whiteout", "y");
    set_attribute("layer/d", "user.overlay.opaque", "x");
    assert_string_equal(tell_layer(), "deleted d/a;changed e/a;");
}

static void folder_that_became_a_file_and_back(void **state)
{
    (void)state;
    put("base/d/a", "x");
    put("layer/d", "now a file");
    put("base/f", "x");
    put("layer/f/in", "x");
    assert_string_equal(tell_layer(), "type d;deleted d/a;type f;added f/in;");
}

static void marks_that_nobody_may_set_are_poison_of_their_path_alone(void **state)
{
    (void)state;
    put("layer/a", "x");
    put("layer/b/in", "x");
    put("layer/c", "x");
    put("layer/d", "x");
    set_attribute("layer/a", "user.overlay.metacopy", "");
    set_attribute("layer/b", "user.overlay.redirect", "/etc");
    set_attribute("layer/c", "user.overlay.origin", "x");
    set_attribute("layer/d", "user.overlay.overlay.opaque", "y");
    assert_string_equal(tell_layer(), "trouble a;trouble b;added c;added d;");
}

static void fifos_are_told_and_block_nobody(void **state)
{
    (void)state;
    put("base/f", "x");
    put_fifo("layer/f");
    put_fifo("layer/g");
    put_fifo("base/h");
    put_fifo("layer/h");
    assert_string_equal(tell_layer(), "type f;added g;");
}

static void only_what_is_asked_for_is_told(void **state)
{
    (void)state;
    own_fd base = folder("base"), layer = folder("layer");
    struct view was = {.base_fd = base}, is = {.base_fd = base, .layer_fds = &layer, .layer_count = 1};
    put("layer/a/b/c", "x");
    put("layer/a/b2", "x");
    assert_string_equal(tell(&was, &is, "a/b", false), "added a/b;added a/b/c;");
    assert_string_equal(tell(&was, &is, "a/b/c", false), "added a/b/c;");
    assert_string_equal(tell(&was, &is, "a/none", false), "");
    assert_string_equal(tell(&was, &is, "a/b2/c", false), "");
    const char *bad[] = {"../a", "/a", "a/../b", "a//b", "a/", "./a", "."};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_string_equal(tell(&was, &is, bad[i], false), "failed");
}

static void snapshots_are_compared_with_each_other(void **state)
{
    (void)state;
    own_fd base = folder("base"), one = folder("one"), two = folder("two"), three = folder("three");
    int early[] = {one, two}, late[] = {one, three}, grown[] = {one, two, three};
    struct view a = {base, early, 2}, b = {base, late, 2}, c = {base, grown, 3};
    put("base/a", "base");
    put("one/a", "one");
    put("two/a", "two");
    put("two/only", "x");
    put("three/a", "one");
    put_whiteout("three/only");
    assert_string_equal(tell(&a, &b, NULL, false), "changed a;deleted only;");
    assert_string_equal(tell(&a, &c, NULL, false), "changed a;deleted only;");
    assert_string_equal(tell(&b, &c, NULL, false), "");
    struct view none = {.base_fd = -1}, alone = {-1, late, 1};
    assert_string_equal(tell(&none, &alone, NULL, false), "added a;");
}

static void layer_that_is_too_deep_is_trouble(void **state)
{
    (void)state;
    own_fd layer = folder("layer");
    char name[201];
    memset(name, 'x', 200);
    name[200] = 0;
    own_fd at = dup(layer);
    for (int i = 0; i < 30; i++) {
        assert_int_equal(mkdirat(at, name, 0755), 0);
        int next = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        close(at);
        at = next;
    }
    struct view was = {.base_fd = -1}, is = {.base_fd = -1, .layer_fds = &layer, .layer_count = 1};
    assert_non_null(strstr(tell(&was, &is, NULL, false), "trouble"));
    assert_int_equal(told_count, 21);
}

static void names_beyond_the_budget_are_refused(void **state)
{
    (void)state;
    struct pale_err e = {0};
    own_roster l = {0};
    size_t budget = 20;
    assert_ok(roster_add(&l, "b", &budget, &e));
    assert_ok(roster_add(&l, "a", &budget, &e));
    assert_ok(roster_add(&l, "b", &budget, &e));
    assert_int_equal(budget, 2);
    assert_int_equal(roster_add(&l, "c", &budget, &e), -PALE_LIMIT);
    roster_sort(&l);
    assert_int_equal(l.count, 2);
    assert_string_equal(roster_name(&l, 0), "a");
}

/* --- beside the kernel's own overlay --- */

static void mess_up(const char *dir, uint64_t *seed, int deeds)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    for (int i = 0; i < deeds; i++) {
        char path[128], other[128];
        snprintf(path, sizeof(path), "%s/%s", dir, names[next_number(seed) % 4]);
        for (unsigned deep = next_number(seed) % 3; deep > 0; deep--)
            snprintf(path + strlen(path), sizeof(path) - strlen(path), "/%s", names[next_number(seed) % 4]);
        snprintf(other, sizeof(other), "%s/%s", dir, names[next_number(seed) % 4]);
        char text[2] = {(char)('0' + next_number(seed) % 3), 0};
        switch (next_number(seed) % 7) {
        case 0:
            (void)mkdirat(top_fd, path, 0755);
            break;
        case 1:
            (void)unlinkat(top_fd, path, 0);
            break;
        case 2:
            (void)!fd_remove_tree(top_fd, path, NULL);
            break;
        case 3:
            (void)renameat(top_fd, path, top_fd, other);
            break;
        case 4:
            (void)!symlinkat(text, top_fd, path);
            break;
        default: {
            own_fd fd = openat(top_fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
            if (fd >= 0)
                (void)!write(fd, text, 1);
        }
        }
    }
}

/* Mounts base and layers, messes the merge up, and says whether our comparison of the layers is that of the two plain trees. */
static int beside_overlay(uint64_t seed)
{
    char data[512];
    for (int round = 0; round < 3; round++) {
        static const char *const lower[] = {"base", "one:%s/base", "two:%s/one:%s/base"};
        static const char *const upper[] = {"one", "two", "three"};
        char lowers[256];
        snprintf(lowers, sizeof(lowers), lower[round], top, top);
        snprintf(data, sizeof(data), "userxattr,lowerdir=%s/%s,upperdir=%s/%s,workdir=%s/work", top, lowers, top, upper[round], top);
        if (mount("overlay", "merged", "overlay", 0, data) < 0)
            return 77;
        close(top_fd);
        top_fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        mess_up("merged", &seed, 25);
        if (round < 2 && umount2("merged", 0) < 0)
            return 1;
    }
    own_fd base = folder("base"), one = folder("one"), two = folder("two"), three = folder("three"), merged = folder("merged");
    int fds[] = {one, two, three};
    struct view was = {.base_fd = base}, is = {base, fds, 3}, plain = {.base_fd = merged};
    char *ours = strdup(tell(&was, &is, NULL, false));
    bool same = ours && strcmp(ours, tell(&was, &plain, NULL, false)) == 0;
    if (!same)
        print_message("ours:   %s\nkernel: %s\n", ours, buf_text(&told));
    free(ours);
    return same ? 0 : 1;
}

static void write_map(const char *path, unsigned id)
{
    char line[32];
    own_fd fd = open(path, O_WRONLY | O_CLOEXEC);
    snprintf(line, sizeof(line), "0 %u 1", id);
    (void)!write(fd, line, strlen(line));
}

/* Goes where a mount hurts nobody, and opens the scratch folder again there. */
static bool may_mount(void)
{
    unsigned uid = getuid(), gid = getgid();
    if (unshare(CLONE_NEWNS | (uid ? CLONE_NEWUSER : 0)) < 0)
        return false;
    if (uid) {
        own_fd fd = open("/proc/self/setgroups", O_WRONLY | O_CLOEXEC);
        (void)!write(fd, "deny", 4);
        write_map("/proc/self/uid_map", uid);
        write_map("/proc/self/gid_map", gid);
    }
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 || chdir(top) < 0)
        return false;
    return true;
}

static void comparison_agrees_with_the_kernels_overlay(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        static const char *const dirs[] = {"base", "one", "two", "three", "work", "merged"};
        for (size_t i = 0; i < 6; i++) {
            assert_int_equal(fd_remove_tree(top_fd, dirs[i], NULL), 0);
            close(folder(dirs[i]));
        }
        uint64_t start = seed;
        mess_up("base", &start, 40);
        pid_t pid = fork();
        if (pid == 0) {
            _exit(may_mount() ? beside_overlay(start) : 77);
        }
        int status = -1;
        assert_true(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status));
        if (WEXITSTATUS(status) == 77)
            skip();
        if (WEXITSTATUS(status) != 0)
            fail_msg("seed %d", (int)seed);
    }
}

static void large_tree_costs_as_much_as_its_changes(void **state)
{
    (void)state;
    struct timespec from, to;
    own_fd base = folder("base"), layer = folder("layer");
    struct view was = {.base_fd = base}, is = {.base_fd = base, .layer_fds = &layer, .layer_count = 1};
    char path[64];
    for (int i = 0; i < scaled(50000); i++) {
        snprintf(path, sizeof(path), "base/%d/%d/file%d", i % 50, i % 500, i);
        put(path, "some content\n");
        if (i % 10 == 0) {
            snprintf(path, sizeof(path), "layer/%d/%d/file%d", i % 50, i % 500, i);
            put(path, "other content\n");
        }
    }
    clock_gettime(CLOCK_MONOTONIC, &from);
    (void)tell(&was, &is, NULL, false);
    clock_gettime(CLOCK_MONOTONIC, &to);
    assert_int_equal(told_count, scaled(5000));
    print_message("%d changes of %d files: %ld ms\n", scaled(5000), scaled(50000),
                  (to.tv_sec - from.tv_sec) * 1000 + (to.tv_nsec - from.tv_nsec) / 1000000);
}

TESTS(CASE(every_difference_is_told_in_order), CASE(folder_that_is_gone_tells_each_file_in_it), CASE(opaque_folder_hides_what_is_below),
      CASE(empty_file_is_a_whiteout_only_where_its_folder_says_so), CASE(folder_that_became_a_file_and_back),
      CASE(marks_that_nobody_may_set_are_poison_of_their_path_alone), CASE(fifos_are_told_and_block_nobody),
      CASE(only_what_is_asked_for_is_told), CASE(snapshots_are_compared_with_each_other), CASE(layer_that_is_too_deep_is_trouble),
      CASE(names_beyond_the_budget_are_refused), CASE(comparison_agrees_with_the_kernels_overlay),
      CASE(large_tree_costs_as_much_as_its_changes))
