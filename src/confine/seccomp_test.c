/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for confine/seccomp: each program is run on every architecture, number and class of argument, and must answer
 * as the table says, with the argument rules as seccomp_want states them. Every instruction of every program must have
 * been met. */
#include "base/test.h"

#include <errno.h>
#include <stdio.h>

#include "confine/bpf_run.h"
#include "confine/seccomp_table.h"
#include "confine/sysnr.h"

struct comparison {
    struct table table;
    const struct seccomp_program *program;
    bool reached[BPF_MAXINSNS];
    size_t cases;
};

static void compare(void *arg, const struct seccomp_data *d)
{
    struct comparison *x = arg;
    uint32_t got = 0, want = table_want(&x->table, d);
    x->cases++;
    if (!bpf_run(x->program->code, x->program->len, d, x->reached, &got))
        fail_msg("%s: the program broke at number %d", x->table.subject->name, d->nr);
    if (got != want)
        fail_msg("%s: arch %08x number %d (%s) args %llx %llx %llx %llx: got %08x, want %08x", x->table.subject->name, d->arch, d->nr,
                 table_name(&x->table, (uint32_t)d->nr), d->args[0], d->args[1], d->args[2], d->args[3], got, want);
}

static void program_answers_as_its_table_says(void **state)
{
    static struct comparison x;
    x = (struct comparison){.program = table_program(*state)};
    table_open(&x.table, *state);
    table_each_number(false, compare, &x);
    table_each_argument(&x.table, false, compare, &x);
    for (size_t i = 0; i < x.program->len; i++)
        if (!x.reached[i])
            fail_msg("%s: no case meets instruction %zu", x.table.subject->name, i);
    print_message("%s: %u instructions, all met by %zu cases\n", x.table.subject->name, x.program->len, x.cases);
}

static void program_is_one_the_kernel_takes(void **state)
{
    const struct table_subject *s = *state;
    const struct seccomp_program *p = table_program(s);
    size_t bad = 0;
    if (!bpf_check(p->code, p->len, &bad))
        fail_msg("%s: instruction %zu is not a good one", s->name, bad);
    assert_true(p->len <= 4096);
}

static void interpreter_refuses_what_seccomp_would(void **state)
{
    (void)state;
    static const struct sock_filter bad[][2] = {
        {{BPF_LD | BPF_W | BPF_ABS, 0, 0, 2}, {BPF_RET | BPF_K, 0, 0, 0}},  /* not aligned */
        {{BPF_LD | BPF_W | BPF_ABS, 0, 0, 64}, {BPF_RET | BPF_K, 0, 0, 0}}, /* past the data */
        {{BPF_LD | BPF_H | BPF_ABS, 0, 0, 0}, {BPF_RET | BPF_K, 0, 0, 0}},  /* half a word */
        {{BPF_JMP | BPF_JA, 0, 0, 1}, {BPF_RET | BPF_K, 0, 0, 0}},          /* past the end */
        {{BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 0}, {BPF_RET | BPF_K, 0, 0, 0}}, /* past the end */
        {{BPF_JMP | BPF_JGE | BPF_K, 0, 1, 0}, {BPF_RET | BPF_K, 0, 0, 0}}, /* past the end */
        {{BPF_RET | BPF_K, 0, 0, 0}, {BPF_ALU | BPF_AND | BPF_K, 0, 0, 0}}, /* no answer at the end */
        {{BPF_RET | BPF_K, 0, 0, 0}, {BPF_RET | BPF_A, 0, 0, 0}},           /* an answer nobody can foretell */
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        size_t where;
        assert_false(bpf_check(bad[i], 2, &where));
    }
}

/* The most dangerous calls by number and profile, stated apart from the table. */
static void no_profile_allows_the_doors_out(void **state)
{
    (void)state;
    static const int never[] = {__NR_mount,
                                __NR_umount2,
                                __NR_pivot_root,
                                __NR_unshare,
                                __NR_setns,
                                __NR_clone3,
                                __NR_open_tree,
                                __NR_move_mount,
                                __NR_fsopen,
                                __NR_fsconfig,
                                __NR_fsmount,
                                __NR_fspick,
                                __NR_mount_setattr,
                                __NR_open_tree_attr,
                                __NR_io_uring_setup,
                                __NR_io_uring_enter,
                                __NR_io_uring_register,
                                __NR_bpf,
                                __NR_perf_event_open,
                                __NR_userfaultfd,
                                __NR_keyctl,
                                __NR_add_key,
                                __NR_request_key,
                                __NR_splice,
                                __NR_tee,
                                __NR_vmsplice,
                                __NR_kexec_load,
                                __NR_init_module,
                                __NR_finit_module,
                                __NR_delete_module,
                                __NR_reboot,
                                __NR_swapon,
                                __NR_pidfd_getfd,
                                __NR_process_madvise,
                                __NR_open_by_handle_at,
                                __NR_name_to_handle_at,
                                __NR_fanotify_init,
                                __NR_memfd_secret,
                                __NR_syslog,
                                __NR_sethostname};
    static const int only_debug[] = {__NR_ptrace, __NR_process_vm_readv, __NR_process_vm_writev, __NR_kcmp};
    bool reached[BPF_MAXINSNS];
    for (int profile = 0; profile < SECCOMP_COUNT; profile++) {
        const struct seccomp_program *p = seccomp_for((enum policy_seccomp)profile);
        struct seccomp_data d = {.arch = TABLE_NATIVE};
        uint32_t answer;
        for (size_t i = 0; i < COUNT(never); i++) {
            d.nr = never[i];
            assert_true(bpf_run(p->code, p->len, &d, reached, &answer));
            assert_true(answer == FAILS(EPERM) || answer == FAILS(ENOSYS));
        }
        for (size_t i = 0; i < COUNT(only_debug); i++) {
            d.nr = only_debug[i];
            assert_true(bpf_run(p->code, p->len, &d, reached, &answer));
            assert_int_equal(answer, profile == SECCOMP_DEBUG ? ALLOWED : FAILS(EPERM));
        }
        d.nr = __NR_chroot;
        assert_true(bpf_run(p->code, p->len, &d, reached, &answer));
        assert_int_equal(answer, profile == SECCOMP_IMAGE_BUILD ? ALLOWED : FAILS(EPERM));
    }
}

/* A command's filter lies above init's: init's must never refuse what a profile allows, nor kill where it only says no. */
static void compare_with_init(void *arg, const struct seccomp_data *d)
{
    (void)arg;
    const struct seccomp_program *init = seccomp_for_program(OWN_INIT);
    bool reached[BPF_MAXINSNS];
    uint32_t of_init = 0, of_profile = 0;
    assert_true(bpf_run(init->code, init->len, d, reached, &of_init));
    for (int i = 0; i < SECCOMP_COUNT; i++) {
        const struct seccomp_program *p = seccomp_for((enum policy_seccomp)i);
        assert_true(bpf_run(p->code, p->len, d, reached, &of_profile));
        if (of_profile == ALLOWED && of_init != ALLOWED)
            fail_msg("init refuses number %d, which a profile allows", d->nr);
        if (of_profile != KILLED && of_init == KILLED)
            fail_msg("init kills at number %d, where a profile does not", d->nr);
    }
}

static void init_allows_all_that_any_profile_does(void **state)
{
    (void)state;
    static struct table t;
    struct seccomp_data d = {.arch = TABLE_NATIVE};
    table_open(&t, &table_subjects[0]);
    for (d.nr = 0; d.nr < (int)TABLE_NUMBERS; d.nr++)
        compare_with_init(NULL, &d);
    table_each_argument(&t, true, compare_with_init, NULL);
}

#define EACH(n)                                                                                                                            \
    {"program_is_one_the_kernel_takes", program_is_one_the_kernel_takes, NULL, NULL, (void *)&table_subjects[n]},                          \
    {                                                                                                                                      \
        "program_answers_as_its_table_says", program_answers_as_its_table_says, NULL, NULL, (void *)&table_subjects[n]                     \
    }

TESTS(EACH(0), EACH(1), EACH(2), EACH(3), EACH(4), EACH(5), cmocka_unit_test(interpreter_refuses_what_seccomp_would),
      cmocka_unit_test(no_profile_allows_the_doors_out), cmocka_unit_test(init_allows_all_that_any_profile_does))
