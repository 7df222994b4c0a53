/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for tree/filecopy, tree/stage, tree/threeway and tree/landing. */
#include "tree/treetest.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "tree/filecopy.h"
#include "tree/landing.h"
#include "tree/stage.h"

static struct buf told;

static void note(void *arg, const struct landing_report *r)
{
    (void)arg;
    assert_non_null(r->reason);
    buf_addf(&told, "%s %s;", landing_word(r->result), r->path);
}

/* Review mode, as it is: the base of the old view is the target. since: now, but for what is written from now on. */
static struct landing review(struct view *was, struct view *is, int *layer)
{
    static struct landing l;
    int target = folder("target");
    *layer = folder("layer");
    *was = (struct view){.base_fd = target};
    *is = (struct view){.base_fd = target, .layer_fds = layer, .layer_count = 1};
    l = (struct landing){.target_fd = target, .was_view = was, .is_view = is, .origin_fd = -1, .tell = note};
    return l;
}

static void settle(struct landing *l)
{
    nanosleep(&(struct timespec){.tv_nsec = 60000000}, NULL);
    clock_gettime(CLOCK_REALTIME, &l->since);
    nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
}

static const char *land(struct landing *l)
{
    struct pale_err e = {0};
    buf_done(&told);
    buf_init(&told, 1 << 24);
    if (landing_run(l, &e) < 0)
        fail_msg("%s", e.text);
    assert_false(is_there("target/" STAGE_FOLDER));
    return buf_text(&told);
}

#define REVIEW                                                                                                                             \
    struct view was, is;                                                                                                                   \
    int layer;                                                                                                                             \
    struct landing l = review(&was, &is, &layer)
#define REVIEW_DONE                                                                                                                        \
    close(layer);                                                                                                                          \
    close(l.target_fd)

static void every_difference_lands(void **state)
{
    (void)state;
    REVIEW;
    put("target/changed", "old");
    put("target/gone", "x");
    put("target/mode", "x");
    put("target/d/e/f", "x");
    put("target/to-folder", "x");
    put("target/to-file/in", "x");
    put_link("target/link", "here");
    settle(&l);
    put("layer/changed", "new");
    put_whiteout("layer/gone");
    put_bytes("layer/mode", "x", 1, 0600);
    put_whiteout("layer/d");
    put("layer/to-folder/in/deep", "x");
    put("layer/to-file", "now a file");
    put_link("layer/link", "there");
    put("layer/new/file", "fresh");
    close(folder("layer/empty"));
    assert_string_equal(land(&l),
                        "landed changed;landed d/e/f;landed d/e;landed d;landed empty;landed gone;landed link;landed mode;landed new;"
                        "landed new/file;landed to-file/in;landed to-file;landed to-folder;landed to-folder/in;"
                        "landed to-folder/in/deep;");
    assert_string_equal(text_of("target/changed"), "new");
    assert_false(is_there("target/gone"));
    assert_false(is_there("target/d"));
    assert_int_equal(mode_of("target/mode"), 0600);
    assert_string_equal(text_of("target/to-folder/in/deep"), "x");
    assert_string_equal(text_of("target/to-file"), "now a file");
    assert_string_equal(text_of("target/link"), "-> there");
    assert_string_equal(text_of("target/new/file"), "fresh");
    assert_true(is_there("target/empty"));
    l.count[LANDING_LANDED] = 0;
    assert_string_equal(land(&l), "");
    REVIEW_DONE;
}

static void what_the_user_changed_meanwhile_is_not_overwritten(void **state)
{
    (void)state;
    REVIEW;
    put("target/a", "old");
    put("target/b", "old");
    put("target/both", "old");
    put("target/d/x", "old");
    settle(&l);
    put("layer/a", "box");
    put_whiteout("layer/b");
    put("layer/both", "same");
    put_whiteout("layer/d");
    put("target/a", "user");
    put("target/b", "user");
    put("target/both", "same");
    put("target/d/new", "user");
    put("target/c", "user");
    put("layer/c", "box");
    assert_string_equal(land(&l), "conflict a;conflict b;conflict c;conflict d/new;landed d/x;conflict d;");
    assert_string_equal(text_of("target/a"), "user");
    assert_string_equal(text_of("target/b"), "user");
    assert_string_equal(text_of("target/c"), "user");
    assert_string_equal(text_of("target/d/new"), "user");
    l.since = (struct timespec){0};
    assert_string_equal(land(&l), "conflict a;conflict b;conflict c;conflict d/new;conflict d;");
    REVIEW_DONE;
}

static void birth_of_the_copy_counts_only_when_asked_for(void **state)
{
    (void)state;
    REVIEW;
    put("target/a", "old");
    settle(&l);
    l.since = (struct timespec){0};
    put("layer/a", "box");
    assert_string_equal(land(&l), "conflict a;");
    l.birth_counts = true;
    const char *said = land(&l);
    if (strcmp(said, "conflict a;") == 0)
        skip(); /* the file system knows no birth */
    assert_string_equal(said, "landed a;");
    put("target/a", "user");
    assert_string_equal(land(&l), "conflict a;");
    REVIEW_DONE;
}

static void texts_that_both_changed_are_merged(void **state)
{
    (void)state;
    REVIEW;
    own_fd origin = folder("origin");
    l.origin_fd = origin;
    put("origin/a", "1\n2\n3\n");
    put("target/a", "one\n2\n3\n");
    put("layer/a", "1\n2\nthree\n");
    put("origin/b", "1\n");
    put("target/b", "user\n");
    put("layer/b", "box\n");
    put("origin/c", "1\n");
    put("target/c", "user\n");
    put("layer/c", "1\n");
    put("origin/d", "1\n2\n3\n");
    put_bytes("target/d", "1\n2\n3\n", 6, 0600);
    put("layer/d", "1\n2\nthree\n");
    put("origin/e", "x");
    put("layer/e", "box changed, user deleted");
    assert_string_equal(land(&l), "merged a;conflict b;same c;landed d;conflict e;");
    assert_string_equal(text_of("target/a"), "one\n2\nthree\n");
    assert_string_equal(text_of("target/b"), "user\n");
    assert_string_equal(text_of("target/c"), "user\n");
    assert_string_equal(text_of("target/d"), "1\n2\nthree\n");
    assert_int_equal(mode_of("target/d"), 0600);
    assert_false(is_there("target/e"));
    REVIEW_DONE;
}

static void old_view_of_its_own_needs_no_proof(void **state)
{
    (void)state;
    REVIEW;
    own_fd base = folder("base");
    was.base_fd = is.base_fd = base;
    put("base/a", "1\n2\n3\n");
    put("target/a", "1\n2\n3\nuser\n");
    put("layer/a", "box\n2\n3\n");
    assert_string_equal(land(&l), "merged a;");
    assert_string_equal(text_of("target/a"), "box\n2\n3\nuser\n");
    REVIEW_DONE;
}

static bool say_no(void *arg, const struct landing_report *r, int content_fd)
{
    (void)arg;
    char first = 0;
    assert_true(content_fd < 0 || pread(content_fd, &first, 1, 0) == 1);
    return strcmp(r->path, "b") != 0;
}

static void only_what_is_wanted_lands(void **state)
{
    (void)state;
    REVIEW;
    const char *paths[] = {"b", "d/e"};
    put("layer/a", "x");
    put("layer/b", "x");
    put("layer/d/e/f", "x");
    put("layer/d/g", "x");
    l.paths = paths;
    l.path_count = 2;
    l.dry_run = true;
    assert_string_equal(land(&l), "landed b;landed d;landed d/e;landed d/e/f;");
    assert_false(is_there("target/b"));
    l.dry_run = false;
    l.ask = say_no;
    assert_string_equal(land(&l), "skipped b;landed d;landed d/e;landed d/e/f;");
    assert_false(is_there("target/b"));
    assert_false(is_there("target/a"));
    assert_false(is_there("target/d/g"));
    const char *bad[] = {"../b"};
    struct pale_err e = {0};
    l.paths = bad;
    l.path_count = 1;
    assert_int_equal(landing_run(&l, &e), -PALE_BAD_INPUT);
    REVIEW_DONE;
}

static void what_the_host_would_obey_is_held(void **state)
{
    (void)state;
    REVIEW;
    put("layer/.envrc", "x");
    put_bytes("layer/run", "x", 1, 0755);
    put_bytes("layer/setid", "x", 1, 04755);
    put_link("layer/out", "/etc");
    put("layer/repo/HEAD", "x");
    put("layer/repo/config", "x");
    close(folder("layer/repo/objects"));
    close(folder("layer/repo/refs"));
    put("layer/plain", "x");
    put_fifo("layer/fifo");
    put("layer/" STAGE_FOLDER "/x", "x");
    assert_string_equal(land(&l),
                        "held .envrc;refused .pale-landing;refused .pale-landing/x;refused fifo;held out;landed plain;landed repo;"
                        "held repo/HEAD;held repo/config;held repo/objects;held repo/refs;held run;held setid;");
    l.include_guarded = true;
    assert_non_null(strstr(land(&l), "landed run;landed setid;"));
    assert_int_equal(mode_of("target/setid"), 0755);
    assert_string_equal(text_of("target/out"), "-> /etc");
    assert_false(is_there("target/fifo"));
    REVIEW_DONE;
}

static void folder_whose_replacement_is_held_keeps_its_files(void **state)
{
    (void)state;
    REVIEW;
    put("target/d/a", "x");
    put("target/d/e/b", "x");
    put("target/f/a", "x");
    put("target/.vscode/a", "x");
    settle(&l);
    put_link("layer/d", "/etc");
    put_fifo("layer/f");
    put_whiteout("layer/.vscode");
    assert_string_equal(land(&l), "held .vscode/a;held .vscode;held d/a;held d/e/b;held d/e;held d;held f/a;refused f;");
    assert_string_equal(text_of("target/d/e/b"), "x");
    l.include_guarded = true;
    assert_string_equal(land(&l), "landed .vscode/a;landed .vscode;landed d/a;landed d/e/b;landed d/e;landed d;held f/a;refused f;");
    assert_string_equal(text_of("target/d"), "-> /etc");
    REVIEW_DONE;
}

static void links_in_the_target_are_not_followed(void **state)
{
    (void)state;
    REVIEW;
    put("outside/file", "canary");
    put("layer/d/file", "box");
    put("layer/d/new", "box");
    put_link("target/d", "../outside");
    assert_non_null(strstr(land(&l), "d/file;"));
    assert_string_equal(text_of("outside/file"), "canary");
    assert_false(is_there("outside/new"));
    REVIEW_DONE;
}

static void hard_links_out_of_the_target_are_cut_not_written(void **state)
{
    (void)state;
    REVIEW;
    put("outside", "canary");
    close(folder("target"));
    assert_int_equal(linkat(top_fd, "outside", top_fd, "target/a", 0), 0);
    assert_int_equal(linkat(top_fd, "outside", top_fd, "target/b", 0), 0);
    settle(&l);
    put("layer/a", "box");
    put_bytes("layer/b", "canary", 6, 0600);
    assert_string_equal(land(&l), "landed a;landed b;");
    assert_string_equal(text_of("outside"), "canary");
    assert_int_equal(mode_of("outside"), 0644);
    REVIEW_DONE;
}

static void one_landing_at_a_time(void **state)
{
    (void)state;
    REVIEW;
    struct stage s;
    struct pale_err e = {0};
    assert_ok(stage_open(&s, l.target_fd, &e));
    assert_int_equal(landing_run(&l, &e), -PALE_BUSY);
    stage_close(&s);
    REVIEW_DONE;
}

/* What a landing that was killed leaves, is removed; what somebody else's version may be, is not. */
static void litter_is_swept_and_nobodys_work_with_it(void **state)
{
    (void)state;
    REVIEW;
    struct pale_err e = {0};
    struct stage s;
    struct staged st;
    struct leaf old;
    int fd;
    put("target/a", "old");
    put("layer/new", "x");
    assert_ok(stage_open(&s, l.target_fd, &e));
    assert_ok(stage_file(&s, &st, &fd, &e));
    close(fd);
    assert_ok(stage_file(&s, &st, &fd, &e));
    close(fd);
    assert_ok(leaf_look(l.target_fd, "a", false, &old, &e));
    assert_ok(stage_promise(&s, &st, &old, &e));
    close(s.fd); /* as a kill would */
    close(s.target_fd);
    assert_string_equal(land(&l), "landed new;");
    assert_int_equal(l.kept, 0);
    put("target/" STAGE_FOLDER "/123-456-7.8", "somebody's");
    assert_int_equal(fchmodat(top_fd, "target/" STAGE_FOLDER, 0700, 0), 0);
    assert_int_equal(landing_run(&l, &e), 0);
    assert_int_equal(l.kept, 1);
    assert_string_equal(text_of("target/" STAGE_FOLDER "/123-456-7.8"), "somebody's");
    REVIEW_DONE;
}

static void what_changed_between_look_and_exchange_goes_back(void **state)
{
    (void)state;
    REVIEW;
    struct pale_err e = {0};
    struct stage s;
    struct staged st;
    struct leaf old;
    int fd;
    put("target/a", "old");
    assert_ok(stage_open(&s, l.target_fd, &e));
    assert_ok(stage_file(&s, &st, &fd, &e));
    close(fd);
    assert_ok(leaf_look(l.target_fd, "a", false, &old, &e));
    assert_ok(stage_promise(&s, &st, &old, &e));
    put("target/a", "newer");
    assert_int_equal(stage_put(&s, &st, l.target_fd, "a", &old, &e), -PALE_BUSY);
    assert_string_equal(text_of("target/a"), "newer");
    assert_int_equal(stage_take(&s, l.target_fd, "a", &old, &e), -PALE_BUSY);
    assert_string_equal(text_of("target/a"), "newer");
    stage_close(&s);
    assert_false(is_there("target/" STAGE_FOLDER));
    REVIEW_DONE;
}

static void holes_stay_holes(void **state)
{
    (void)state;
    struct pale_err e = {0};
    struct filecopy_count c = {0};
    struct stat st;
    own_fd in = openat(top_fd, "in", O_RDWR | O_CREAT | O_CLOEXEC, 0600), out = openat(top_fd, "out", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    bool same = false;
    assert_true(pwrite(in, "x", 1, 50 << 20) == 1 && ftruncate(in, 1ll << 40) == 0);
    assert_ok(filecopy_run(in, out, &c, &e));
    assert_true(c.bytes < 1 << 20 || c.cloned > 0);
    assert_true(fstat(out, &st) == 0 && st.st_size == 1ll << 40 && st.st_blocks < 100000);
    assert_int_equal(ftruncate(in, 60 << 20) | ftruncate(out, 60 << 20), 0);
    assert_ok(leaf_same_bytes(in, out, &same, &e));
    assert_true(same);
}

/* --- kill -9 at any moment --- */

#define FILES 40

static void killed_anywhere_each_file_is_old_or_new(void **state)
{
    (void)state;
    uint64_t seed = 3;
    unsigned broken_off = 0;
    for (int round = 0; round < 60; round++) {
        assert_int_equal(fd_remove_tree(top_fd, "target", NULL) | fd_remove_tree(top_fd, "layer", NULL), 0);
        REVIEW;
        char path[32];
        for (int i = 0; i < FILES; i++) {
            snprintf(path, sizeof(path), "target/d%d/%d", i % 4, i);
            if (i % 3)
                put(path, "old");
            snprintf(path, sizeof(path), "layer/d%d/%d", i % 4, i);
            if (i % 5 == 1)
                put_whiteout(path);
            else
                put(path, "new!");
        }
        l.since.tv_sec = INT32_MAX; /* everything is as the box found it */
        nanosleep(&(struct timespec){.tv_nsec = 45000000}, NULL);
        pid_t pid = fork();
        if (pid == 0) {
            l.tell = NULL;
            _exit(landing_run(&l, NULL) < 0);
        }
        nanosleep(&(struct timespec){.tv_nsec = next_number(&seed) % 6000000}, NULL);
        kill(pid, SIGKILL);
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        broken_off += WIFSIGNALED(status) && is_there("target/" STAGE_FOLDER);
        for (int i = 0; i < FILES; i++) {
            snprintf(path, sizeof(path), "target/d%d/%d", i % 4, i);
            const char *now = text_of(path), *then = i % 3 ? "old" : "(none)", *done = i % 5 == 1 ? "(none)" : "new!";
            if (strcmp(now, then) != 0 && strcmp(now, done) != 0)
                fail_msg("%s: %s", path, now);
        }
        (void)land(&l);
        assert_int_equal(l.kept, 0);
        for (int i = 0; i < FILES; i++) {
            snprintf(path, sizeof(path), "target/d%d/%d", i % 4, i);
            assert_string_equal(text_of(path), i % 5 == 1 ? "(none)" : "new!");
        }
        REVIEW_DONE;
    }
    print_message("%u of 60 were killed in the middle\n", broken_off);
    assert_true(broken_off > 0);
}

static void many_changes_land_in_no_time(void **state)
{
    (void)state;
    REVIEW;
    struct timespec from, to;
    char path[64];
    for (int i = 0; i < scaled(50000); i++) {
        snprintf(path, sizeof(path), "target/%d/%d/file%d", i % 50, i % 500, i);
        put(path, "some content\n");
        if (i % 10 == 0) {
            snprintf(path, sizeof(path), "layer/%d/%d/file%d", i % 50, i % 500, i);
            put(path, "other content\n");
        }
    }
    settle(&l);
    l.durable = true;
    sync();
    clock_gettime(CLOCK_MONOTONIC, &from);
    (void)land(&l);
    clock_gettime(CLOCK_MONOTONIC, &to);
    assert_int_equal(l.count[LANDING_LANDED], scaled(5000));
    print_message("%d changes landed in %d files, durably: %ld ms\n", scaled(5000), scaled(50000),
                  (to.tv_sec - from.tv_sec) * 1000 + (to.tv_nsec - from.tv_nsec) / 1000000);
    REVIEW_DONE;
}

TESTS(CASE(every_difference_lands), CASE(what_the_user_changed_meanwhile_is_not_overwritten),
      CASE(birth_of_the_copy_counts_only_when_asked_for), CASE(texts_that_both_changed_are_merged),
      CASE(old_view_of_its_own_needs_no_proof), CASE(only_what_is_wanted_lands), CASE(what_the_host_would_obey_is_held),
      CASE(folder_whose_replacement_is_held_keeps_its_files), CASE(links_in_the_target_are_not_followed),
      CASE(hard_links_out_of_the_target_are_cut_not_written), CASE(one_landing_at_a_time), CASE(litter_is_swept_and_nobodys_work_with_it),
      CASE(what_changed_between_look_and_exchange_goes_back), CASE(holes_stay_holes), CASE(killed_anywhere_each_file_is_old_or_new),
      CASE(many_changes_land_in_no_time))
