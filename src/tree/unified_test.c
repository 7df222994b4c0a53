/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for tree/script, tree/unified and tree/merge3, with git itself as the judge where it is there. */
#include "tree/treetest.h"

#include <sys/wait.h>
#include <time.h>

#include "base/limits.h"
#include "tree/compare.h"
#include "tree/merge3.h"
#include "tree/script.h"
#include "tree/unified.h"

static struct unified_side file_of(const char *text)
{
    return (struct unified_side){UNIFIED_FILE, 0644, text, strlen(text), false};
}

static const struct unified_side none;
static struct unified_count count;

static const char *show(const char *path, struct unified_side was, struct unified_side is)
{
    static struct buf out;
    struct pale_err e = {0};
    buf_done(&out);
    buf_init(&out, 1 << 26);
    assert_ok(unified_write(path, &was, &is, &count, &out, &e));
    return buf_text(&out);
}

static void hunks_have_their_context_and_counts(void **state)
{
    (void)state;
    assert_string_equal(show("x", file_of("1\n2\n3\n4\n5\n6\n7\n8\n9\n"), file_of("1\n2\n3\n4\nfive\n6\n7\n8\n9\nten\n")),
                        "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -2,8 +2,9 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n 9\n+ten\n");
    assert_int_equal(count.added, 2);
    assert_int_equal(count.removed, 1);
    assert_string_equal(show("x", file_of("a\n1\n2\n3\n4\n5\n6\n7\nb\n"), file_of("A\n1\n2\n3\n4\n5\n6\n7\nB\n")),
                        "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,4 +1,4 @@\n-a\n+A\n 1\n 2\n 3\n@@ -6,4 +6,4 @@\n 5\n 6\n 7\n-b\n+B\n");
}

static void ends_without_newline_are_said(void **state)
{
    (void)state;
    assert_string_equal(show("x", file_of("a"), file_of("a\n")),
                        "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n");
}

static void heads_say_what_came_and_went(void **state)
{
    (void)state;
    struct unified_side run = file_of("a\n"), plain = file_of("a\n"), link = {UNIFIED_LINK, 0777, "to", 2, false}, close_mode = plain;
    run.mode = 0755;
    close_mode.mode = 0600;
    assert_string_equal(show("x", none, file_of("a\n")),
                        "diff --git a/x b/x\nnew file mode 100644\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a\n");
    assert_string_equal(show("x", run, none), "diff --git a/x b/x\ndeleted file mode 100755\n--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n");
    assert_string_equal(show("x", none, file_of("")), "diff --git a/x b/x\nnew file mode 100644\n");
    assert_string_equal(show("x", plain, run), "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n");
    assert_string_equal(show("x", plain, close_mode), "diff --git a/x b/x\nold mode 100644\nnew mode 100600\n");
    assert_string_equal(show("x", plain, plain), "");
    assert_string_equal(show("x", plain, link), "diff --git a/x b/x\ndeleted file mode 100644\n--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"
                                                "diff --git a/x b/x\nnew file mode 120000\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+to\n"
                                                "\\ No newline at end of file\n");
}

static void what_is_no_text_is_only_named(void **state)
{
    (void)state;
    struct unified_side binary = {UNIFIED_FILE, 0644, "a\0b", 3, false}, large = {UNIFIED_FILE, 0644, NULL, 0, true};
    assert_string_equal(show("x", file_of("a"), binary), "diff --git a/x b/x\nBinary files a/x and b/x differ\n");
    assert_true(count.binary);
    assert_string_equal(show("x", none, binary), "diff --git a/x b/x\nnew file mode 100644\nBinary files /dev/null and b/x differ\n");
    assert_string_equal(show("x", file_of("a"), large), "diff --git a/x b/x\nFiles a/x and b/x are too large to show\n");
    size_t n = TEXT_LINES_MAX + 1u;
    char *many = malloc(n);
    assert_non_null(many);
    memset(many, '\n', n);
    struct unified_side lines = {UNIFIED_FILE, 0644, many, n, false};
    assert_string_equal(show("x", file_of("a"), lines), "diff --git a/x b/x\nFiles a/x and b/x are too large to show\n");
    free(many);
}

static void names_are_quoted_as_git_does(void **state)
{
    (void)state;
    own_buf b;
    buf_init(&b, 1000);
    unified_name(&b, "a/", "\x1b[0m\n\t\"\\ \xc3\xa9");
    assert_string_equal(buf_text(&b), "\"a/\\033[0m\\n\\t\\\"\\\\ \\303\\251\"");
}

/* --- git --- */

static int run_git(const char *dir, const char *out, const char *const *args)
{
    pid_t pid = fork();
    if (pid == 0) {
        static char *const env[] = {(char *)"PATH=/usr/bin:/bin", (char *)"GIT_CONFIG_NOSYSTEM=1", (char *)"HOME=/nonexistent",
                                    (char *)"GIT_CEILING_DIRECTORIES=/tmp", NULL};
        int fd = openat(top_fd, out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        if (fd < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0 || chdir(top) < 0 || chdir(dir) < 0)
            _exit(126);
        execvpe("git", (char *const *)args, env);
        _exit(127);
    }
    int status = -1;
    assert_true(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    return WEXITSTATUS(status);
}

static size_t random_text(uint64_t *seed, char *ret, size_t lines)
{
    static const char *const words[] = {"", "{", "}", "return 0;", "x", "int a;", " ", "last"};
    size_t n = 0, much = lines ? next_number(seed) % lines : 0;
    for (size_t i = 0; i < much; i++)
        n += (size_t)snprintf(ret + n, 32, "%s\n", words[next_number(seed) % 8]);
    return n && next_number(seed) % 4 == 0 ? n - 1 : n;
}

/* A text that is another one with some lines gone, changed or come. */
static size_t random_edit(uint64_t *seed, const char *from, size_t len, char *ret)
{
    size_t n = 0;
    for (size_t at = 0; at < len;) {
        const char *end = memchr(from + at, '\n', len - at);
        size_t line = end ? (size_t)(end - (from + at)) + 1 : len - at;
        unsigned deed = next_number(seed) % 12;
        if (deed == 1)
            n += (size_t)snprintf(ret + n, 32, "new %u\n", next_number(seed) % 50);
        if (deed != 0) {
            memcpy(ret + n, from + at, line);
            n += line;
        }
        at += line;
    }
    return n;
}

static int add_difference(void *arg, const struct compare_record *r, struct pale_err *e)
{
    const struct compare *c = arg;
    const struct view_place *places[2] = {&r->was, &r->is};
    const struct view *views[2] = {c->was_view, c->is_view};
    struct buf text[2];
    struct unified_side side[2] = {{0}};
    own_fd out = openat(top_fd, "patch", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    buf_init(&text[0], TEXT_BYTES_MAX);
    buf_init(&text[1], TEXT_BYTES_MAX);
    for (int i = 0; i < 2; i++) {
        own_fd fd = -1;
        if (places[i]->leaf.kind == LEAF_FILE && view_open(views[i], places[i], r->path, &fd, e) == 0)
            assert_int_equal(leaf_read(fd, &text[i], e), 0);
        else if (places[i]->leaf.kind == LEAF_LINK)
            assert_int_equal(view_read_link(views[i], places[i], r->path, &text[i], e), 0);
        side[i] = (struct unified_side){places[i]->leaf.kind == LEAF_FILE   ? UNIFIED_FILE
                                        : places[i]->leaf.kind == LEAF_LINK ? UNIFIED_LINK
                                                                            : UNIFIED_NONE,
                                        places[i]->leaf.st.st_mode & 0777, text[i].data, text[i].len, false};
    }
    const char *shown = show(r->path, side[0], side[1]);
    assert_true(fd_write_full(out, shown, strlen(shown)));
    buf_done(&text[0]);
    buf_done(&text[1]);
    return 0;
}

/* Old and new trees with the same names in them, more or less. */
static void random_trees(uint64_t *seed)
{
    static const char *const names[] = {"a", "b c", "d/e", "d/\xc3\xa9t\xc3\xa9", "tab\tand\nmore", "q\"uote", "g/h/i", "-rf"};
    static char text[65536], other[65536];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char path[64];
        size_t n = random_text(seed, text, 60), m = random_edit(seed, text, n, other);
        for (int side = 0; side < 2; side++) {
            unsigned kind = next_number(seed) % 8;
            snprintf(path, sizeof(path), "%s/%s", side ? "new" : "old", names[i]);
            if (kind == 1)
                put_link(path, text[0] ? "there" : "here");
            else if (kind > 1)
                put_bytes(path, side ? other : text, side ? m : n, kind == 2 ? 0755 : 0644);
        }
    }
}

static void what_git_applies_is_the_new_tree(void **state)
{
    (void)state;
    static const char *const apply[] = {"git", "apply", "--whitespace=nowarn", "../patch", NULL};
    for (uint64_t seed = 1; seed <= 60; seed++) {
        uint64_t start = seed * 77;
        struct pale_err e = {0};
        assert_int_equal(fd_remove_tree(top_fd, "old", NULL) | fd_remove_tree(top_fd, "new", NULL), 0);
        own_fd was_fd = folder("old"), is_fd = folder("new");
        struct view was = {.base_fd = was_fd}, is = {.base_fd = is_fd};
        random_trees(&start);
        struct compare c = {.was_view = &was, .is_view = &is, .tell = add_difference, .arg = &c};
        (void)unlinkat(top_fd, "patch", 0);
        assert_ok(compare_run(&c, &e));
        if (!is_there("patch"))
            continue;
        int status = run_git("old", "said", apply);
        if (status == 127)
            skip();
        if (status != 0)
            fail_msg("seed %d: %s", (int)seed, text_of("said"));
        (void)unlinkat(top_fd, "patch", 0);
        assert_ok(compare_run(&c, &e));
        if (is_there("patch") && text_of("patch")[0])
            fail_msg("seed %d: there is a difference left:\n%s", (int)seed, text_of("patch"));
    }
}

/* --- merging --- */

static const char *merge(const char *base, const char *ours, const char *theirs)
{
    static struct buf out;
    struct pale_err e = {0};
    bool clean = false;
    buf_done(&out);
    buf_init(&out, 1 << 20);
    struct merge3_text b = {base, strlen(base)}, o = {ours, strlen(ours)}, t = {theirs, strlen(theirs)};
    assert_ok(merge3_run(b, o, t, &clean, &out, &e));
    assert_true(clean || out.len == 0);
    return clean ? buf_text(&out) : "conflict";
}

static void changes_that_lie_apart_are_merged(void **state)
{
    (void)state;
    assert_string_equal(merge("1\n2\n3\n", "one\n2\n3\n", "1\n2\nthree\n"), "one\n2\nthree\n");
    assert_string_equal(merge("1\n2\n3\n", "1\n2\n3\n", "1\n2\nthree\n"), "1\n2\nthree\n");
    assert_string_equal(merge("1\n2\n3\n", "0\n1\n2\n3\n", "1\n2\n3\n4"), "0\n1\n2\n3\n4");
    assert_string_equal(merge("1\n2\n3\n", "2\n3\n", "1\n2\n"), "2\n");
    assert_string_equal(merge("", "", "x\n"), "x\n");
    assert_string_equal(merge("1\n2\n3\n", "1\nX\n3\n", "1\nX\n3\n"), "1\nX\n3\n");
}

static void changes_that_meet_are_in_conflict(void **state)
{
    (void)state;
    assert_string_equal(merge("1\n2\n3\n", "1\nX\n3\n", "1\nY\n3\n"), "conflict");
    assert_string_equal(merge("1\n2\n3\n", "one\n2\n3\n", "1\ntwo\n3\n"), "conflict");
    assert_string_equal(merge("1\n", "1\nx\n", "1\ny\n"), "conflict");
    assert_string_equal(merge("", "x\n", "y\n"), "conflict");
    assert_string_equal(merge("1\n2\n3\n", "1\n3\n", "1\n2 changed\n3\n"), "conflict");
    struct pale_err e = {0};
    bool clean = true;
    own_buf out;
    buf_init(&out, 100);
    assert_ok(merge3_run((struct merge3_text){"a\0b", 3}, (struct merge3_text){"a\0b", 3}, (struct merge3_text){"c", 1}, &clean, &out, &e));
    assert_false(clean);
}

static void clean_merges_agree_with_git(void **state)
{
    (void)state;
    static char base[65536], ours[65536], theirs[65536];
    static const char *const args[] = {"git", "merge-file", "-p", "-q", "ours", "base", "theirs", NULL};
    unsigned clean_ones = 0;
    for (uint64_t seed = 1; seed <= 120; seed++) {
        uint64_t start = seed * 1001;
        size_t n = random_text(&start, base, 40);
        base[n] = 0;
        ours[random_edit(&start, base, n, ours)] = 0;
        theirs[random_edit(&start, base, n, theirs)] = 0;
        const char *merged = merge(base, ours, theirs);
        if (strcmp(merged, "conflict") == 0)
            continue;
        clean_ones++;
        put("m/base", base);
        put("m/ours", ours);
        put("m/theirs", theirs);
        int status = run_git("m", "said", args);
        if (status == 127)
            skip();
        if (status == 0 && strcmp(text_of("said"), merged) != 0)
            fail_msg("seed %d:\n%s\n--- git:\n%s", (int)seed, merged, text_of("said"));
    }
    assert_true(clean_ones > 10);
}

/* --- bounds --- */

static long milliseconds_since(const struct timespec *from)
{
    struct timespec to;
    clock_gettime(CLOCK_MONOTONIC, &to);
    return (to.tv_sec - from->tv_sec) * 1000 + (to.tv_nsec - from->tv_nsec) / 1000000;
}

/* Rebuilds the new text from the old by the script. */
static void check_script(const struct script *s)
{
    struct script_hunk h = {0};
    size_t made = 0, n;
    for (bool more = true; more;) {
        uint32_t from = h.was_to;
        more = script_next(s, &h);
        const uint8_t *p = script_lines(&s->was, from, h.was_from, &n);
        assert_true(made + n <= s->is.len && memcmp(p, s->is.bytes + made, n) == 0);
        made += n + (s->is.start[h.is_to] - s->is.start[h.is_from]);
    }
    assert_int_equal(made, s->is.len);
}

static void the_worst_text_is_compared_within_bounds(void **state)
{
    (void)state;
    size_t lines = TEXT_LINES_MAX, n = 0, m = 0;
    char *a = malloc(8 * lines), *b = malloc(8 * lines);
    uint64_t seed = 5;
    struct timespec from;
    struct pale_err e = {0};
    assert_true(a && b);
    /* Every line is on both sides, in no common order: nothing can be set aside, and the shortest script is as long as the texts. */
    for (size_t i = 0; i < lines; i++) {
        n += (size_t)snprintf(a + n, 8, "%u\n", next_number(&seed) % 3000);
        m += (size_t)snprintf(b + m, 8, "%u\n", next_number(&seed) % 3000);
    }
    own_script s = {0};
    clock_gettime(CLOCK_MONOTONIC, &from);
    assert_ok(script_init(&s, a, n, b, m, &e));
    print_message("a million lines in no common order: %ld ms%s\n", milliseconds_since(&from), s.coarse ? ", coarse" : "");
    assert_true(s.coarse);
    check_script(&s);
    free(a);
    free(b);
}

TESTS(cmocka_unit_test(hunks_have_their_context_and_counts), cmocka_unit_test(ends_without_newline_are_said),
      cmocka_unit_test(heads_say_what_came_and_went), cmocka_unit_test(what_is_no_text_is_only_named),
      cmocka_unit_test(names_are_quoted_as_git_does), CASE(what_git_applies_is_the_new_tree),
      cmocka_unit_test(changes_that_lie_apart_are_merged), cmocka_unit_test(changes_that_meet_are_in_conflict),
      CASE(clean_merges_agree_with_git), cmocka_unit_test(the_worst_text_is_compared_within_bounds))
