/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's own word: a child under each filter really makes the call with every number from 0 to 1023, with the numbers of the
 * other ABIs of the machine, and with the arguments that rules look at, and must get the table's answer.
 *
 * How it works: nothing is carried out. Below the filter under test lies one of our own that answers every call with an errno that
 * no kernel has. Of two filters the stricter answer counts, and of two that give an errno that of the younger: so the child sees our
 * mark where the filter allows the call, the filter's own errno where it refuses, and is killed where it kills. Calls that the child
 * needs for itself carry a word in their last argument that our filter lets through. */
#include "base/test.h"

#include <errno.h>
#include <linux/filter.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "confine/seccomp_table.h"

#define MARK 3999
#define BY_KERNEL 4999
#define PASSWORD 0x70616c65u
#define BATCH 32768u
#define LAST_ARGUMENT (offsetof(struct seccomp_data, args) + 5 * 8)

/* A sanitizer makes a fork ten times as dear: then one kill in so many is tried. */
#if defined(__SANITIZE_ADDRESS__)
#define KILLS_STEP 16
#define SPLIT fork
#else
#define KILLS_STEP 1
#define SPLIT vfork /* the child leaves nothing behind but its answers: thousands die here, and a copy of our memory for each is dear */
#endif

struct question {
    struct seccomp_data data;
    uint32_t want, got;
};

/* Shared with the child. */
static struct sheet {
    uint32_t at, count;
    struct question question[BATCH];
} * sheet;

struct asker {
    struct table table;
    const struct seccomp_program *instead; /* of the subject's own */
    size_t asked, kills, passed;           /* passed over: KILLS_STEP */
};

/* ---- the child ---- */

static const struct sock_filter below[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TABLE_NATIVE, 0, 3),
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, LAST_ARGUMENT),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PASSWORD, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | MARK),
};

/* Does not come back, and does not say so: a sanitizer would make calls of its own before a function that does. */
static void leave(long status)
{
    static volatile bool here = true;
    while (here)
        syscall(SYS_exit_group, status, 0, 0, 0, 0, (long)PASSWORD);
}

static void load(const struct sock_filter *code, unsigned short len)
{
    struct sock_fprog prog = {.len = len, .filter = (struct sock_filter *)code};
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog, 0, 0, (long)PASSWORD) != 0)
        leave(99);
}

#ifdef __x86_64__
/* By the door of 32-bit programs. */
static long call_i386(const struct seccomp_data *d)
{
    long r;
    __asm__ volatile("int $0x80" : "=a"(r) : "a"((long)d->nr), "b"(0l), "c"(0l), "d"(0l) : "memory", "r8", "r9", "r10", "r11");
    return r;
}
#endif

static uint32_t call(const struct seccomp_data *d)
{
    const __u64 *a = d->args;
#ifdef __x86_64__
    if (d->arch == AUDIT_ARCH_I386) {
        long r = call_i386(d);
        return r < 0 ? (uint32_t)-r : 0;
    }
#endif
    long r = syscall(d->nr, a[0], a[1], a[2], a[3], a[4], a[5]);
    return r < 0 ? (uint32_t)errno : 0;
}

static void child(const struct seccomp_program *p)
{
    struct rlimit none = {0, 0};
    static const int caught[] = {SIGFPE, SIGILL, SIGSEGV, SIGBUS, SIGSYS}; /* by the test's own runner, which must not go on here */
    for (size_t i = 0; i < COUNT(caught); i++)
        signal(caught[i], SIG_DFL);
    if (setrlimit(RLIMIT_CORE, &none) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        _exit(98);
    load(below, COUNT(below));
    load(p->code, p->len);
    for (; sheet->at < sheet->count; sheet->at++)
        sheet->question[sheet->at].got = call(&sheet->question[sheet->at].data);
    leave(0);
}

/* On x86-64 a kernel that has uretprobe (335) and uprobe (336) asks no filter about them: called from anywhere but the page that the
 * kernel has mapped for them itself, the one ends the caller and the other fails, and neither does anything. */
static bool is_kernels_own(const struct seccomp_data *d, int status, uint32_t got)
{
#ifdef __x86_64__
    bool ended = WIFSIGNALED(status) && WTERMSIG(status) == SIGILL;
    return d->arch == TABLE_NATIVE && ((d->nr == 335 && ended) || (d->nr == 336 && got == ENXIO));
#else
    (void)d, (void)status, (void)got;
    return false;
#endif
}

/* ---- the questions ---- */

static void judge(const struct asker *a, const struct question *q)
{
    uint32_t want = q->want == ALLOWED ? MARK : q->want == KILLED ? KILLED : q->want & SECCOMP_RET_DATA;
    const struct seccomp_data *d = &q->data;
    if (q->got != want && q->got != BY_KERNEL && !is_kernels_own(d, 0, q->got))
        fail_msg("%s: arch %08x number %#x (%s) args %llx %llx %llx %llx: the kernel says %u, the table %08x", a->table.subject->name,
                 d->arch, d->nr, table_name(&a->table, (uint32_t)d->nr), d->args[0], d->args[1], d->args[2], d->args[3], q->got, q->want);
}

static void ask_all(struct asker *a)
{
    sheet->at = 0;
    while (sheet->at < sheet->count) {
        int status = 0;
        pid_t pid = SPLIT();
        if (pid == 0)
            child(a->instead ? a->instead : table_program(a->table.subject));
        assert_true(pid > 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS) {
            sheet->question[sheet->at++].got = KILLED;
            a->kills++;
            continue;
        }
        if (is_kernels_own(&sheet->question[sheet->at].data, status, 0)) {
            sheet->question[sheet->at++].got = BY_KERNEL;
            continue;
        }
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            fail_msg("%s: the child ended with %x at number %d", a->table.subject->name, status, sheet->question[sheet->at].data.nr);
    }
    uint32_t count = sheet->count;
    a->asked += count;
    sheet->count = 0;
    for (uint32_t i = 0; i < count; i++)
        judge(a, &sheet->question[i]);
}

static void ask(void *arg, const struct seccomp_data *d)
{
    struct asker *a = arg;
    uint32_t want = table_want(&a->table, d);
    if (want == KILLED && KILLS_STEP > 1 && a->passed++ % KILLS_STEP)
        return;
    assert_true((uint32_t)d->args[5] != PASSWORD);
    sheet->question[sheet->count++] = (struct question){*d, want, 0};
    if (sheet->count == BATCH)
        ask_all(a);
}

/* Of the arguments that cost a process each, one in so many. */
static void ask_some(void *arg, const struct seccomp_data *d)
{
    struct asker *a = arg;
    static size_t turn;
    if (table_want(&a->table, d) != KILLED || turn++ % 64 == 0)
        ask(arg, d);
}

static void kernel_answers_as_the_table_says(void **state)
{
    static const uint64_t fills[][6] = {{0}, {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX}};
    static struct asker a;
    a = (struct asker){0};
    table_open(&a.table, *state);
    for (size_t f = 0; f < COUNT(fills); f++) {
        struct seccomp_data d = {.arch = TABLE_NATIVE};
        memcpy(d.args, fills[f], sizeof(d.args));
        for (d.nr = 0; d.nr < (int)TABLE_NUMBERS; d.nr++)
            ask(&a, &d);
    }
    table_each_argument(&a.table, true, ask_some, &a);
    ask_all(&a);
    print_message("%s: %zu calls, %zu of them deadly\n", a.table.subject->name, a.asked, a.kills);
}

/* The child is killed at each: a second way to every call, closed. */
static void kernel_kills_at_every_number_of_another_abi(void **state)
{
#ifdef __x86_64__
    static struct asker a;
    a = (struct asker){0};
    table_open(&a.table, *state);
    for (uint32_t nr = 0; nr < TABLE_NUMBERS; nr++)
        ask(&a, &(struct seccomp_data){.arch = TABLE_NATIVE, .nr = (int)(nr | 0x40000000)});
    ask_all(&a);
    /* A kernel without 32-bit programs has no such door: it answers with SIGSEGV. */
    pid_t pid = fork();
    if (pid == 0)
        _exit(call_i386(&(struct seccomp_data){.nr = 20}) > 0 ? 0 : 1);
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    bool has_i386 = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    for (uint32_t nr = 0; has_i386 && nr < TABLE_NUMBERS; nr++)
        ask(&a, &(struct seccomp_data){.arch = AUDIT_ARCH_I386, .nr = (int)nr});
    ask_all(&a);
    print_message("%s: %zu calls, %zu of them deadly%s\n", a.table.subject->name, a.asked, a.kills, has_i386 ? "" : " (no i386 here)");
    assert_int_equal(a.asked, a.kills);
#else
    (void)state;
    skip();
#endif
}

/* Does the child see the difference at all? Under a filter that allows everything it must see nothing but the mark. */
static void without_a_filter_every_call_is_seen_as_allowed(void **state)
{
    static const struct sock_filter all[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    static const struct seccomp_program open = {all, 1};
    static struct asker a;
    (void)state;
    table_open(&a.table, &table_subjects[0]);
    a.instead = &open;
    for (uint32_t nr = 0; nr < TABLE_NUMBERS; nr++)
        sheet->question[sheet->count++] = (struct question){.data = {.arch = TABLE_NATIVE, .nr = (int)nr}, .want = ALLOWED};
    ask_all(&a);
    assert_int_equal(a.asked, TABLE_NUMBERS);
}

static int share(void **state)
{
    (void)state;
    sheet = mmap(NULL, sizeof(*sheet), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return sheet == MAP_FAILED ? -1 : 0;
}

#define EACH(n)                                                                                                                            \
    {"kernel_answers_as_the_table_says", kernel_answers_as_the_table_says, NULL, NULL, (void *)&table_subjects[n]},                        \
    {                                                                                                                                      \
        "kernel_kills_at_every_number_of_another_abi", kernel_kills_at_every_number_of_another_abi, NULL, NULL, (void *)&table_subjects[n] \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_filter_every_call_is_seen_as_allowed), EACH(0), EACH(1), EACH(2), EACH(3), EACH(4), EACH(5)};
    return cmocka_run_group_tests(tests, share, NULL);
}
