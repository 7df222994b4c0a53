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
    unlink(path);
    unlink(head);
    return rmdir(dir);
}

static void write_records(int n)
{
    struct audit a;
    assert_int_equal(audit_open(&a, path, false, "b", "0123", NULL), 0);
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
    assert_int_equal(audit_verify(path, NULL, &c, NULL), 0);
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
    assert_int_equal(audit_open(&a, path, false, "b", "0123", NULL), 0);
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
    assert_int_equal(audit_open(&a, path, false, "b", "0123", NULL), 0);
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
    assert_int_equal(audit_open(&a, path, false, "b", "0123", NULL), 0);
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
        _exit(setrlimit(RLIMIT_FSIZE, &most) == 0 && audit_open(&a, path, false, "b", "0123", NULL) < 0 ? 0 : 1);
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

static void shared_log_takes_no_record_behind_an_end_it_cannot_read(void **state)
{
    (void)state;
    struct audit a;
    struct pale_err e = {0};
    struct stat st;
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    assert_int_equal(write(fd, "garbage\nmore", 12), 12);
    close(fd);
    assert_int_equal(audit_open(&a, path, true, "b", "0123", &e), 0);
    (void)audit_begin(&a, "exec");
    assert_int_equal(audit_commit(&a, &e), -PALE_CORRUPT);
    audit_close(&a);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 12);
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
      cmocka_unit_test_setup_teardown(shared_log_takes_no_record_behind_an_end_it_cannot_read, fresh, clean),
      cmocka_unit_test_setup_teardown(fetched_log_is_held_to_the_head_that_came_with_it, fresh, clean),
      cmocka_unit_test_setup_teardown(what_a_full_disk_cost_is_counted_in_the_next_record, fresh, clean))
