/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for box/audit: the chain holds, and every kind of tampering is found. */
#include "base/test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "box/audit.h"

static char dir[64], path[96], head[112];

static int fresh(void **state)
{
    (void)state;
    snprintf(dir, sizeof(dir), "/tmp/audit-test-XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    snprintf(path, sizeof(path), "%s/log", dir);
    snprintf(head, sizeof(head), "%s/log.head", dir);
    return 0;
}

static int clean(void **state)
{
    (void)state;
    char mark[128];
    snprintf(mark, sizeof(mark), "%s.begun", path);
    unlink(mark);
    unlink(path);
    unlink(head);
    return rmdir(dir);
}

static void write_records(int n)
{
    struct audit a;
    assert_int_equal(audit_open(&a, path, AUDIT_BIRTH, "b", "0123", NULL), 0);
    for (int i = 0; i < n; i++) {
        struct json *j = audit_begin(&a, "exec");
        json_text(j, "argv", "a \"quoted\"\nline");
        assert_int_equal(audit_commit(&a, NULL), 0);
    }
    audit_close(&a);
}

static struct audit_check verify(void)
{
    struct audit_check c;
    assert_int_equal(audit_verify(path, NULL, NULL, &c, NULL), 0);
    return c;
}

static size_t slurp(const char *name, char *ret, size_t cap)
{
    FILE *f = fopen(name, "re");
    assert_non_null(f);
    size_t n = fread(ret, 1, cap - 1, f);
    fclose(f);
    ret[n] = 0;
    return n;
}

static void fetched_log_is_held_to_the_head_that_came_with_it(void **state)
{
    (void)state;
    static char text[65536];
    char told[128], later[128], wrong[128];
    struct audit_check c;
    write_records(3);
    slurp(head, told, sizeof(told));
    told[strcspn(told, "\n")] = 0;
    write_records(2);
    slurp(head, later, sizeof(later));
    later[strcspn(later, "\n")] = 0;
    size_t n = slurp(path, text, sizeof(text));
    audit_verify_text(text, n, later, &c);
    assert_true(c.good && c.records == 5);
    audit_verify_text(text, n, told, &c); /* the others came while it was read */
    assert_true(c.good && c.records == 5);
    size_t cut = (size_t)((char *)memrchr(text, '\n', n - 1) - text) + 1;
    audit_verify_text(text, cut, later, &c);
    assert_false(c.good);
    audit_verify_text(text, n, "", &c);
    assert_false(c.good);
    snprintf(wrong, sizeof(wrong), "%s", later);
    wrong[30] = wrong[30] == '0' ? '1' : '0';
    audit_verify_text(text, n, wrong, &c);
    assert_false(c.good);
    audit_verify_text(text, n, "5 short", &c);
    assert_false(c.good);
    audit_verify_text("", 0, "", &c);
    assert_true(c.good && c.records == 0);
    text[20] ^= 1;
    audit_verify_text(text, n, later, &c);
    assert_false(c.good);
}

static void what_a_full_disk_cost_is_counted_in_the_next_record(void **state)
{
    (void)state;
    struct audit a;
    struct rlimit old, small;
    struct stat st;
    char text[4096] = "";
    assert_int_equal(audit_open(&a, path, AUDIT_BIRTH, "b", "0123", NULL), 0);
    (void)audit_begin(&a, "box.start");
    assert_int_equal(audit_commit(&a, NULL), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = (rlim_t)st.st_size + 30; /* the first try is cut short, the others are refused */
    void (*before)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    for (int i = 0; i < 2; i++) {
        (void)audit_begin(&a, "exec.end");
        assert_true(audit_commit(&a, NULL) < 0);
    }
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, before);
    (void)audit_begin(&a, "box.stop");
    assert_int_equal(audit_commit(&a, NULL), 0);
    audit_close(&a);
    struct audit_check c = verify();
    assert_true(c.good);
    assert_int_equal(c.records, 2);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(read(fd, text, sizeof(text) - 1) > 0);
    close(fd);
    assert_non_null(strstr(text, "\"lost_before\":2"));
}

static void chain_holds_over_several_openings(void **state)
{
    (void)state;
    write_records(3);
    write_records(2);
    struct audit_check c = verify();
    assert_true(c.good);
    assert_int_equal(c.records, 5);
}

/* Reads the log, lets edit change it, writes it back. */
/* Records of both kinds stand in one log: older ones name nobody. */
static void record_names_its_caller_if_there_is_one(void **state)
{
    (void)state;
    static char text[65536];
    struct audit a;
    write_records(2);
    assert_int_equal(audit_open(&a, path, AUDIT_BIRTH, "b", "0123", NULL), 0);
    a.caller = "0123456789abcdef";
    json_u64(audit_begin(&a, "exec"), "job", 1);
    assert_int_equal(audit_commit(&a, NULL), 0);
    a.caller = NULL;
    (void)audit_begin(&a, "exec.end");
    assert_int_equal(audit_commit(&a, NULL), 0);
    audit_close(&a);
    struct audit_check c = verify();
    assert_true(c.good && c.records == 4);
    slurp(path, text, sizeof(text));
    const char *named = strstr(text, "\"event\":\"exec\",\"caller\":\"0123456789abcdef\",\"job\":1");
    assert_non_null(named);
    assert_ptr_equal(strstr(text, "caller"), strstr(named, "caller"));
    assert_null(strstr(strchr(named, '\n'), "caller"));
}

static void tamper(void (*edit)(char *text, size_t *len))
{
    static char text[65536];
    int fd = open(path, O_RDWR);
    ssize_t n = read(fd, text, sizeof(text));
    size_t len = (size_t)n;
    assert_true(n > 0);
    edit(text, &len);
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(pwrite(fd, text, len, 0), (ssize_t)len);
    close(fd);
}

static void change_a_letter(char *text, size_t *len)
{
    (void)len;
    *strstr(text, "quoted") = 'Q';
}

static void drop_first_line(char *text, size_t *len)
{
    size_t n = (size_t)(strchr(text, '\n') - text) + 1;
    memmove(text, text + n, *len - n);
    *len -= n;
}

static void drop_last_lines(char *text, size_t *len)
{
    (void)text;
    *len /= 2;
    while (*len && text[*len - 1] != '\n')
        --*len;
}

static void swap_lines(char *text, size_t *len)
{
    (void)len;
    char *a = text, *b = strchr(text, '\n') + 1, *end = strchr(b, '\n') + 1;
    static char copy[65536];
    size_t la = (size_t)(b - a), lb = (size_t)(end - b);
    memcpy(copy, b, lb);
    memcpy(copy + lb, a, la);
    memcpy(a, copy, la + lb);
}

static void edit_is_found(void **state)
{
    (void)state;
    write_records(4);
    tamper(change_a_letter);
    assert_false(verify().good);
}

static void removal_at_the_front_is_found(void **state)
{
    (void)state;
    write_records(4);
    tamper(drop_first_line);
    assert_false(verify().good);
}

static void removal_at_the_end_is_found(void **state)
{
    (void)state;
    write_records(6);
    tamper(drop_last_lines);
    assert_false(verify().good);
}

static void reordering_is_found(void **state)
{
    (void)state;
    write_records(4);
    tamper(swap_lines);
    assert_false(verify().good);
}

static void torn_line_is_kept_and_explained(void **state)
{
    (void)state;
    write_records(2);
    int fd = open(path, O_WRONLY | O_APPEND);
    assert_int_equal(write(fd, "{\"seq\":3,\"ti", 12), 12);
    close(fd);
    write_records(1);
    struct audit_check c = verify();
    assert_true(c.good);
    assert_int_equal(c.torn, 1);
    assert_int_equal(c.records, 4);
}

/* A cut just before the newline leaves a record that is whole. */
static void record_that_lacks_only_its_newline_is_ended(void **state)
{
    (void)state;
    write_records(2);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(truncate(path, st.st_size - 1), 0);
    write_records(1);
    struct audit_check c = verify();
    assert_true(c.good);
    assert_int_equal(c.torn, 0);
    assert_int_equal(c.records, 3);
}

static void unexplained_garbage_is_found(void **state)
{
    (void)state;
    write_records(2);
    int fd = open(path, O_WRONLY | O_APPEND);
    assert_int_equal(write(fd, "garbage\n", 8), 8);
    close(fd);
    write_records(1);
    assert_false(verify().good);
}

static void log_begun_without_a_record_is_good(void **state)
{
    (void)state;
    struct audit a;
    assert_int_equal(audit_open(&a, path, AUDIT_BIRTH, "b", "0123", NULL), 0);
    audit_close(&a);
    assert_true(verify().good);
}

/* A disk that fills up in the middle of the explanation: the log stays as it was, and is explained once there is room. */
static void recovery_that_does_not_fit_changes_nothing(void **state)
{
    (void)state;
    write_records(2);
    int fd = open(path, O_WRONLY | O_APPEND);
    assert_int_equal(write(fd, "{\"seq\":3,\"ti", 12), 12);
    off_t size = lseek(fd, 0, SEEK_END);
    close(fd);
    pid_t pid = fork();
    if (pid == 0) {
        struct rlimit most = {(rlim_t)size + 20, (rlim_t)size + 20};
        struct audit a;
        signal(SIGXFSZ, SIG_IGN);
        _exit(setrlimit(RLIMIT_FSIZE, &most) == 0 && audit_open(&a, path, AUDIT_BIRTH, "b", "0123", NULL) < 0 ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, size);
    write_records(1);
    assert_true(verify().good);
}

static void shared_log_whose_end_cannot_be_read_goes_on_with_a_gap(void **state)
{
    (void)state;
    struct audit a;
    struct pale_err e = {0};
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    assert_int_equal(write(fd, "garbage\nmore", 12), 12);
    close(fd);
    assert_int_equal(audit_open(&a, path, AUDIT_SHARED, "b", "0123", &e), 0);
    (void)audit_begin(&a, "exec");
    assert_int_equal(audit_commit(&a, &e), 0);
    audit_close(&a);
    assert_false(verify().good);
}

static void write_files(const char *log, size_t n, const char *top, size_t m)
{
    const char *const names[] = {path, head}, *const data[] = {log, top};
    const size_t sizes[] = {n, m};
    for (int i = 0; i < 2; i++) {
        int fd = open(names[i], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, data[i], sizes[i]), (ssize_t)sizes[i]);
        close(fd);
    }
}

/* Opened by the next keeper, whatever kind the log is of. */
static struct audit_check go_on(enum audit_kind kind)
{
    struct audit a;
    struct audit_check c;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(audit_open(&a, path, kind, "b", "0123", NULL), 0);
        (void)audit_begin(&a, "exec");
        assert_int_equal(audit_commit(&a, NULL), 0);
        audit_close(&a);
    }
    assert_int_equal(audit_verify(path, NULL, kind == AUDIT_SHARED ? NULL : "0123", &c, NULL), 0);
    return c;
}

struct pair {
    char log[16384], top[256];
    size_t n, m;
};

static struct pair make_pair(int records)
{
    struct pair p;
    write_records(records);
    p.n = slurp(path, p.log, sizeof(p.log));
    p.m = slurp(head, p.top, sizeof(p.top));
    return p;
}

static size_t lines_of(const char *text, size_t n)
{
    size_t lines = 0;
    for (size_t i = 0; i < n; i++)
        lines += text[i] == '\n';
    return lines;
}

static void log_cut_at_any_byte_stays_told(void **state)
{
    (void)state;
    const struct pair p = make_pair(4);
    for (size_t cut = 0; cut < p.n; cut += cut + 1 == p.n - 1 || p.log[cut] == '\n' ? 1 : cut + 7 < p.n ? 7 : 1) {
        write_files(p.log, cut, p.top, p.m);
        struct audit_check c = go_on(cut % 2 ? AUDIT_BOX : AUDIT_SHARED);
        /* The last newline is no loss. */
        assert_int_equal(c.good, cut == p.n - 1);
        uint64_t kept = lines_of(p.log, cut) + (cut < p.n && p.log[cut] == '\n');
        assert_int_equal(c.missing, 4 - kept);
        assert_int_equal(c.gaps, cut != p.n - 1);
        assert_true(c.good || strstr(c.problem, "tells"));
        assert_int_equal(c.last, c.good ? 6 : 7);
    }
}

static void damaged_head_stays_told(void **state)
{
    (void)state;
    const struct pair p = make_pair(3);
    for (size_t cut = 0; cut < p.m; cut++) {
        write_files(p.log, p.n, p.top, cut);
        struct audit_check c = go_on(cut % 2 ? AUDIT_BOX : AUDIT_SHARED);
        /* Of an earlier build it ended behind the digest. */
        assert_false(c.good);
        assert_int_equal(c.gaps, 1);
        assert_int_equal(c.missing, 0);
    }
    for (size_t at = 0; at < 85; at++) {
        struct pair q = p;
        q.top[at] ^= 1;
        write_files(q.log, q.n, q.top, q.m);
        assert_false(go_on(AUDIT_BOX).good);
    }
}

static void last_record_with_another_letter_stays_told(void **state)
{
    (void)state;
    const struct pair p = make_pair(3);
    const char *last = (const char *)memrchr(p.log, '\n', p.n - 1) + 1;
    for (size_t at = (size_t)(last - p.log); at < p.n - 1; at++) {
        struct pair q = p;
        q.log[at] ^= 1;
        write_files(q.log, q.n, q.top, q.m);
        assert_false(go_on(AUDIT_BOX).good);
    }
}

static void missing_files_stay_told(void **state)
{
    (void)state;
    static const enum audit_kind kinds[] = {AUDIT_BOX, AUDIT_SHARED};
    for (unsigned which = 1; which < 4; which++)
        for (unsigned i = 0; i < 2; i++) {
            char mark[128];
            struct audit a;
            write_files("", 0, "", 0);
            snprintf(mark, sizeof(mark), "%s.begun", path);
            unlink(mark);
            for (int n = 0; n < 3; n++) {
                assert_int_equal(audit_open(&a, path, kinds[i] == AUDIT_SHARED ? AUDIT_SHARED : AUDIT_BIRTH, "b", "0123", NULL), 0);
                (void)audit_begin(&a, "exec");
                assert_int_equal(audit_commit(&a, NULL), 0);
                audit_close(&a);
            }
            assert_true(verify().good);
            if (which & 1)
                unlink(path);
            if (which & 2)
                unlink(head);
            struct audit_check c = go_on(kinds[i]);
            assert_false(c.good);
            assert_int_equal(c.gaps, 1);
            assert_int_equal(c.missing, which == 1 ? 3 : 0);
            unlink(mark);
        }
}

/* A writer that was killed between log and head; a head that the power kept from the disk. */
static void kill_or_power_cut_that_lost_nothing_is_no_gap(void **state)
{
    (void)state;
    struct pair older = make_pair(1), old = make_pair(4), now = make_pair(1);
    const struct pair *heads[] = {&older, &old, &now};
    for (int i = 0; i < 6; i++) {
        write_files(now.log, now.n, heads[i % 3]->top, now.m);
        assert_true(verify().good);
        assert_true(go_on(i < 3 ? AUDIT_BOX : AUDIT_SHARED).good);
    }
    /* A head that was never of this log, and is behind it, is another thing. */
    older.top[40] ^= 1;
    write_files(now.log, now.n, older.top, older.m);
    assert_false(go_on(AUDIT_BOX).good);
}

static void append_that_was_cut_by_a_kill_is_no_gap(void **state)
{
    (void)state;
    struct pair old = make_pair(3), now = make_pair(1);
    for (size_t cut = old.n + 1; cut < now.n; cut += 5) {
        write_files(now.log, cut, old.top, old.m);
        struct audit_check c = go_on(cut % 2 ? AUDIT_BOX : AUDIT_SHARED);
        assert_true(c.good);
        assert_int_equal(c.gaps, 0);
    }
}

static void log_of_another_box_stays_told(void **state)
{
    (void)state;
    struct audit a;
    assert_int_equal(audit_open(&a, path, AUDIT_BIRTH, "c", "4567", NULL), 0);
    (void)audit_begin(&a, "exec");
    assert_int_equal(audit_commit(&a, NULL), 0);
    audit_close(&a);
    struct audit_check c = go_on(AUDIT_BOX);
    assert_false(c.good);
    assert_non_null(strstr(c.problem, "another box"));
}

static void log_that_a_checkpoint_knows_longer_stays_told(void **state)
{
    (void)state;
    char beside[96];
    write_records(2);
    snprintf(beside, sizeof(beside), "%s/checkpoint", dir);
    int fd = open(beside, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, "5 0123\n", 7), 7);
    close(fd);
    struct audit_check c = go_on(AUDIT_BOX);
    unlink(beside);
    assert_false(c.good);
    assert_int_equal(c.missing, 3);
    assert_int_equal(c.last, 8);
}

static void what_is_no_plain_file_is_refused(void **state)
{
    (void)state;
    struct audit a;
    struct pale_err e = {0};
    const char *const names[] = {path, head};
    for (unsigned i = 0; i < 8; i++) {
        const char *at = names[i % 2];
        write_records(1);
        unlink(at);
        if (i / 2 == 0)
            assert_int_equal(mkfifo(at, 0600), 0);
        else if (i / 2 == 1)
            assert_int_equal(symlink("/dev/null", at), 0);
        else if (i / 2 == 2)
            assert_int_equal(mkdir(at, 0700), 0);
        else
            assert_true(close(open(at, O_WRONLY | O_CREAT, 0600)) == 0 && chmod(at, 0666) == 0);
        assert_int_equal(audit_open(&a, path, AUDIT_BOX, "b", "0123", &e), -PALE_CORRUPT);
        assert_non_null(strstr(e.text, i / 2 == 3 ? "chmod 600" : "no plain file"));
        assert_int_equal(i / 2 == 2 ? rmdir(at) : unlink(at), 0);
        assert_false(go_on(AUDIT_BOX).good);
        unlink(path);
        unlink(head);
    }
}

static void head_remembers_that_a_keeper_runs(void **state)
{
    (void)state;
    static const char *const ends[] = {"box.stop", "box.died", "box.refused", "box.lost", "exec"};
    for (unsigned i = 0; i < 5; i++) {
        struct audit a;
        assert_int_equal(audit_open(&a, path, AUDIT_BIRTH, "b", "0123", NULL), 0);
        (void)audit_begin(&a, "box.start");
        assert_int_equal(audit_commit(&a, NULL), 0);
        (void)audit_begin(&a, ends[i]);
        assert_int_equal(audit_commit(&a, NULL), 0);
        audit_close(&a);
        assert_int_equal(audit_open(&a, path, AUDIT_BOX, "b", "0123", NULL), 0);
        assert_int_equal(a.running, i == 4);
        audit_close(&a);
    }
}

TESTS(cmocka_unit_test_setup_teardown(chain_holds_over_several_openings, fresh, clean),
      cmocka_unit_test_setup_teardown(record_names_its_caller_if_there_is_one, fresh, clean),
      cmocka_unit_test_setup_teardown(edit_is_found, fresh, clean),
      cmocka_unit_test_setup_teardown(removal_at_the_front_is_found, fresh, clean),
      cmocka_unit_test_setup_teardown(removal_at_the_end_is_found, fresh, clean),
      cmocka_unit_test_setup_teardown(reordering_is_found, fresh, clean),
      cmocka_unit_test_setup_teardown(torn_line_is_kept_and_explained, fresh, clean),
      cmocka_unit_test_setup_teardown(record_that_lacks_only_its_newline_is_ended, fresh, clean),
      cmocka_unit_test_setup_teardown(unexplained_garbage_is_found, fresh, clean),
      cmocka_unit_test_setup_teardown(log_begun_without_a_record_is_good, fresh, clean),
      cmocka_unit_test_setup_teardown(recovery_that_does_not_fit_changes_nothing, fresh, clean),
      cmocka_unit_test_setup_teardown(shared_log_whose_end_cannot_be_read_goes_on_with_a_gap, fresh, clean),
      cmocka_unit_test_setup_teardown(fetched_log_is_held_to_the_head_that_came_with_it, fresh, clean),
      cmocka_unit_test_setup_teardown(what_a_full_disk_cost_is_counted_in_the_next_record, fresh, clean),
      cmocka_unit_test_setup_teardown(log_cut_at_any_byte_stays_told, fresh, clean),
      cmocka_unit_test_setup_teardown(damaged_head_stays_told, fresh, clean),
      cmocka_unit_test_setup_teardown(last_record_with_another_letter_stays_told, fresh, clean),
      cmocka_unit_test_setup_teardown(missing_files_stay_told, fresh, clean),
      cmocka_unit_test_setup_teardown(kill_or_power_cut_that_lost_nothing_is_no_gap, fresh, clean),
      cmocka_unit_test_setup_teardown(append_that_was_cut_by_a_kill_is_no_gap, fresh, clean),
      cmocka_unit_test_setup_teardown(log_of_another_box_stays_told, fresh, clean),
      cmocka_unit_test_setup_teardown(log_that_a_checkpoint_knows_longer_stays_told, fresh, clean),
      cmocka_unit_test_setup_teardown(what_is_no_plain_file_is_refused, fresh, clean),
      cmocka_unit_test_setup_teardown(head_remembers_that_a_keeper_runs, fresh, clean))
