/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for tree/weld. */
#include "tree/treetest.h"

#include "tree/compare.h"
#include "tree/weld.h"

#define LAYERS 5

static int tell(void *arg, const struct compare_record *r, struct pale_err *e)
{
    (void)e;
    print_message("%s %s\n", compare_word(r->what), r->path);
    ++*(int *)arg;
    return 0;
}

/* Is the view of the base and the layers the same as that of the base and the welded one? */
static int differences(const int *layers, size_t count, int welded, int base)
{
    struct pale_err e = {0};
    int found = 0;
    struct view was = {.base_fd = base, .layer_fds = layers, .layer_count = count};
    struct view is = {.base_fd = base, .layer_fds = &welded, .layer_count = 1};
    struct compare c = {.was_view = &was, .is_view = &is, .tell = tell, .arg = &found};
    assert_ok(compare_run(&c, &e));
    return found;
}

/* layer_fds: the lowest first, as views have them. */
static int weld(const int *layer_fds, size_t count)
{
    struct pale_err e = {0};
    int reversed[LAYERS];
    for (size_t i = 0; i < count; i++)
        reversed[i] = layer_fds[count - 1 - i];
    int to = folder("welded");
    assert_ok(weld_run(reversed, count, to, &e));
    return to;
}

static void weld_keeps_what_each_layer_says(void **state)
{
    (void)state;
    put("base/deleted", "x");
    put("base/kept", "x");
    put("base/hidden/old", "x");
    put("base/through/old", "x");
    put("low/changed", "low");
    put("low/only", "low");
    put_whiteout("low/deleted");
    put("low/through/a", "a");
    put("low/again/x", "x");
    put("high/changed", "high");
    put("high/through/b", "b");
    put("high/hidden/new", "x");
    set_attribute("high/hidden", "user.overlay.opaque", "y");
    put_whiteout("high/again");
    own_fd base = folder("base"), low = folder("low"), high = folder("high");
    const int layers[] = {low, high};
    own_fd welded = weld(layers, 2);
    assert_int_equal(differences(layers, 2, welded, base), 0);
    struct stat a, b;
    assert_int_equal(fstatat(top_fd, "high/changed", &a, 0), 0);
    assert_int_equal(fstatat(top_fd, "welded/changed", &b, 0), 0);
    assert_int_equal(a.st_ino, b.st_ino);
}

static void weld_hides_with_a_folder_what_was_a_file(void **state)
{
    (void)state;
    put("base/x/base", "x");
    put("low/x", "a file");
    put("high/x/new", "x");
    set_attribute("high/x", "user.overlay.opaque", "y");
    own_fd base = folder("base"), low = folder("low"), high = folder("high");
    const int layers[] = {low, high};
    own_fd welded = weld(layers, 2);
    assert_int_equal(differences(layers, 2, welded, base), 0);
}

static void weld_refuses_poison(void **state)
{
    struct pale_err e = {0};
    (void)state;
    put("low/x/y", "x");
    set_attribute("low/x", "user.overlay.redirect", "/etc");
    own_fd low = folder("low"), to = folder("welded");
    const int layers[] = {low};
    assert_int_equal(weld_run(layers, 1, to, &e), -PALE_CORRUPT);
}

static unsigned seed;

static unsigned roll(unsigned n)
{
    seed = seed * 1103515245u + 12345u;
    return (seed >> 16) % n;
}

/* What a box could have done to this name in this layer, given what is below. */
static void scribble(const char *layer, bool is_base)
{
    static const char *const names[] = {"a", "b", "c"};
    for (int i = 0; i < 14; i++) {
        char path[128];
        int depth = 1 + (int)roll(3), n = snprintf(path, sizeof(path), "%s", layer);
        for (int k = 0; k < depth; k++)
            n += snprintf(path + n, sizeof(path) - (size_t)n, "/%s", names[roll(3)]);
        struct stat st;
        /* Only where nothing of this layer stands, and no file stands in the way. */
        char above_it[128];
        snprintf(above_it, sizeof(above_it), "%.*s", (int)(strrchr(path, '/') - path), path);
        bool way = true;
        for (char *at = strchr(above_it, '/'); way && at; at = strchr(at + 1, '/')) {
            char part[128];
            snprintf(part, sizeof(part), "%.*s", (int)(strchr(at + 1, '/') ? strchr(at + 1, '/') - above_it : (long)strlen(above_it)),
                     above_it);
            way = fstatat(top_fd, part, &st, AT_SYMLINK_NOFOLLOW) < 0 || S_ISDIR(st.st_mode);
        }
        if (!way || fstatat(top_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0)
            continue;
        switch (roll(is_base ? 2 : 4)) {
        case 0:
            put(path, layer);
            break;
        case 1:
            put_link(path, layer);
            break;
        case 2:
            put_whiteout(path);
            break;
        default: {
            char in[160];
            snprintf(in, sizeof(in), "%s/in", path);
            put(in, layer);
            set_attribute(path, "user.overlay.opaque", "y");
        }
        }
    }
}

static void weld_is_the_same_as_all_its_layers(void **state)
{
    for (unsigned i = 0; i < 150; i++) {
        int fds[LAYERS], base;
        char name[16];
        seed = i + 1;
        scribble("base", true);
        base = folder("base");
        for (int k = 0; k < LAYERS; k++) {
            snprintf(name, sizeof(name), "l%d", k);
            scribble(name, false);
            fds[k] = folder(name);
        }
        /* A run from the middle: there is something below it. */
        own_fd welded = weld(fds, LAYERS);
        int bad = differences(fds, LAYERS, welded, base);
        if (bad)
            print_message("seed %u\n", i + 1);
        assert_int_equal(bad, 0);
        close(base);
        for (int k = 0; k < LAYERS; k++)
            close(fds[k]);
        clean(state);
        fresh(state);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {CASE(weld_keeps_what_each_layer_says), CASE(weld_hides_with_a_folder_what_was_a_file),
                                       CASE(weld_refuses_poison), CASE(weld_is_the_same_as_all_its_layers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
