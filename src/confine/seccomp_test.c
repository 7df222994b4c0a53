/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for confine/seccomp: each program is run on every architecture, number and class of argument, and must answer
 * as the table says, with the argument rules as seccomp_want states them. Every instruction of every program must have
 * been met. */
#include "base/test.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stdio.h>

#include "base/number.h"
#include "confine/bpf_run.h"
#include "confine/seccomp.h"
#include "confine/seccomp_want.h"
#include "confine/sysnr.h"

#if defined(__x86_64__)
#define NATIVE AUDIT_ARCH_X86_64
#define FOREIGN AUDIT_ARCH_AARCH64
#define HAS_X32 true
#else
#define NATIVE AUDIT_ARCH_AARCH64
#define FOREIGN AUDIT_ARCH_X86_64
#define HAS_X32 false
#endif

#define NUMBERS 1024u

/* ---- the table, read once more ---- */

enum line_kind { LINE_NONE, LINE_ALLOW, LINE_DENY, LINE_ALLOW_IN, LINE_CHECK };

struct line {
    const char *name, *number;
    enum line_kind kind;
    int err;
    unsigned profiles;
};

/* clang-format off */
#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
#define DEFAULT(answer)
#define ALLOW(n, why) {#n, TEXT(__NR_##n), LINE_ALLOW, 0, 0},
#define DENY(n, e, why) {#n, TEXT(__NR_##n), LINE_DENY, e, 0},
#define ALLOW_IN(n, profile, e, why) {#n, TEXT(__NR_##n), LINE_ALLOW_IN, e, IN_##profile},
#define CHECK(n, answer, why) {#n, TEXT(__NR_##n), LINE_CHECK, 0, 0},
#define RULE(n, profile, answer, when, why)

static const struct line payload_lines[] = {
#include "confine/syscalls.def"
};
static const struct line keeper_lines[] = {
#include "confine/lists/keeper.def"
};
static const struct line init_lines[] = {
#include "confine/lists/init.def"
};
static const struct line reader_lines[] = {
#include "confine/lists/reader.def"
};
/* clang-format on */

/* ---- the programs ---- */

struct subject {
    const char *name;
    bool own;
    int which; /* enum policy_seccomp or enum seccomp_own */
    uint32_t other;
    unsigned profiles;
    const struct line *lines;
    size_t line_count;
    enum want_list list;
    const struct line *more;
    size_t more_count;
};

#define PAYLOAD payload_lines, COUNT(payload_lines), WANT_PAYLOAD
static struct subject subjects[] = {
    {"strict", false, SECCOMP_STRICT, FAILS(ENOSYS), IN_STRICT, PAYLOAD, NULL, 0},
    {"debug", false, SECCOMP_DEBUG, FAILS(ENOSYS), IN_DEBUG, PAYLOAD, NULL, 0},
    {"image-build", false, SECCOMP_IMAGE_BUILD, FAILS(ENOSYS), IN_IMAGE_BUILD, PAYLOAD, NULL, 0},
    {"init", true, OWN_INIT, FAILS(ENOSYS), IN_STRICT | IN_DEBUG | IN_IMAGE_BUILD, PAYLOAD, init_lines, COUNT(init_lines)},
    {"keeper", true, OWN_KEEPER, KILLED, 0, keeper_lines, COUNT(keeper_lines), WANT_KEEPER, NULL, 0},
    {"reader", true, OWN_READER, KILLED, 0, reader_lines, COUNT(reader_lines), WANT_READER, NULL, 0},
};

static const struct seccomp_program *program_of(const struct subject *s)
{
    return s->own ? seccomp_for_program((enum seccomp_own)s->which) : seccomp_for((enum policy_seccomp)s->which);
}

/* What a subject says about every number: the line, and the argument rule if it has one. */
struct expectation {
    const struct subject *subject;
    const struct line *line[NUMBERS];
    want_rule *rule[NUMBERS];
    bool reached[BPF_MAXINSNS];
};

static void expect_lines(struct expectation *x, const struct line *lines, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t nr;
        if (!number_u64(lines[i].number, NUMBERS - 1, &nr))
            continue; /* not on this architecture; the generator has refused names that exist nowhere */
        x->line[nr] = &lines[i];
        x->rule[nr] = lines[i].kind == LINE_CHECK ? want_for(x->subject->list, lines[i].name) : NULL;
        if (lines[i].kind == LINE_CHECK && !x->rule[nr])
            fail_msg("%s: no second statement of the rules for %s", x->subject->name, lines[i].name);
    }
}

static uint32_t wanted(const struct expectation *x, const struct seccomp_data *d)
{
    uint32_t nr = (uint32_t)d->nr;
    if (d->arch != NATIVE)
        return KILLED;
    if (HAS_X32 && nr >= 0x40000000 && nr != 0xffffffff)
        return KILLED;
    const struct line *l = nr < NUMBERS ? x->line[nr] : NULL;
    if (!l)
        return x->subject->other;
    switch (l->kind) {
    case LINE_ALLOW:
        return ALLOWED;
    case LINE_DENY:
        return FAILS(l->err);
    case LINE_ALLOW_IN:
        return l->profiles & x->subject->profiles ? ALLOWED : FAILS(l->err);
    default:
        return x->rule[nr](x->subject->profiles, d->args);
    }
}

static void compare(void *arg, const struct seccomp_data *d)
{
    struct expectation *x = arg;
    const struct seccomp_program *p = program_of(x->subject);
    uint32_t got = 0, want = wanted(x, d);
    if (!bpf_run(p->code, p->len, d, x->reached, &got))
        fail_msg("%s: the program broke at number %d", x->subject->name, d->nr);
    if (got != want)
        fail_msg("%s: arch %08x number %d (%s) args %llx %llx %llx %llx: got %08x, want %08x", x->subject->name, d->arch, d->nr,
                 (uint32_t)d->nr < NUMBERS && x->line[d->nr] ? x->line[d->nr]->name : "-", d->args[0], d->args[1], d->args[2], d->args[3],
                 got, want);
}

/* ---- every architecture and number ---- */

/* Beside plain fills, arguments that some rule refuses and some that it allows: a number must not meet the rules of its
 * neighbour. */
static const uint64_t fills[][6] = {
    {0},
    {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX},
    {0x5a5a5a5a5a5a5a5a, 0x5a5a5a5a5a5a5a5a, 0x5a5a5a5a5a5a5a5a, 0x5a5a5a5a5a5a5a5a, 0x5a5a5a5a5a5a5a5a, 0x5a5a5a5a5a5a5a5a},
    {0, 0x5412},                /* ioctl refuses */
    {0, 0x5413},                /* the reader's ioctl allows */
    {0, 11},                    /* futex refuses */
    {35},                       /* prctl refuses */
    {0, 020666},                /* mknod refuses */
    {0, 0, 020666},             /* mknodat refuses */
    {0x7e020000},               /* clone refuses */
    {1, 1},                     /* socket allows */
    {0, 6, 31},                 /* setsockopt refuses */
    {0, 0, 1u << 29, 1u << 29}, /* the sends refuse */
    {0, 0, 3, 0x22},            /* mmap allows */
    {0, 0, 7, 0x22},            /* mmap refuses */
    {0, 0, 0, 0x1000},          /* newfstatat allows */
    {0, 04755},                 /* chmod refuses */
    {0, 0, 04755},              /* fchmodat refuses */
    {0, 0100, 04755},           /* open refuses */
    {0, 0, 0100, 04755},        /* openat refuses */
};

static void compare_numbers(struct expectation *x)
{
    static const uint32_t archs[] = {NATIVE, FOREIGN, AUDIT_ARCH_I386, AUDIT_ARCH_ARM, 0, 0xffffffff, NATIVE ^ 1, NATIVE ^ 0x80000000};
    static const uint32_t bits[] = {0, 0x40000000, 0x80000000, 0xc0000000, 0x00010000};
    static const uint32_t edges[] = {0x3fffffff, 0x7fffffff, 0xfffffffe, 0xffffffff, NUMBERS, NUMBERS + 1};
    for (size_t a = 0; a < COUNT(archs); a++) {
        for (size_t f = 0; f < COUNT(fills); f++) {
            struct seccomp_data d = {.arch = archs[a]};
            memcpy(d.args, fills[f], sizeof(d.args));
            for (size_t b = 0; b < COUNT(bits); b++)
                for (uint32_t nr = 0; nr < NUMBERS; nr++) {
                    d.nr = (int)(nr | bits[b]);
                    compare(x, &d);
                }
            for (size_t i = 0; i < COUNT(edges); i++) {
                d.nr = (int)edges[i];
                compare(x, &d);
            }
        }
    }
}

/* ---- every class of argument ---- */

/* Around each value that a rule of any table names: the value, its neighbours, and it with one more bit. */
static const uint32_t families[] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13,      14,         15,        16,
                                    17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30,      31,         32,        33,
                                    34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 0x10001, 0xffffffff, 0x80000002};
static const uint32_t types[] = {0,     1,     2,     3,        4,        5,        6,    10,    02000001,   02000002,  02000003,
                                 04001, 04002, 04003, 02004001, 02004002, 02004003, 0x11, 0x101, 0x80000001, 0xffffffff};
static const uint32_t protocols[] = {0,  1,  2,  3,  4,  5,   6,   7,   9,   12,  15,  16,      17,         18,        33,
                                     41, 50, 57, 58, 59, 108, 132, 136, 255, 256, 262, 0x10000, 0x80000006, 0xffffffff};
static const uint32_t levels[] = {0, 1, 2, 5, 6, 7, 16, 17, 18, 41, 282, 0x80000006, 0x10006, 0xffffffff};
static const uint32_t options[] = {0,  1,  18, 19, 20, 25, 26,  27,  30,  31,         32,        35,
                                   49, 50, 51, 52, 53, 99, 100, 101, 119, 0x8000001f, 0xffffffff};
static const uint32_t commands[] = {0,      0x5401, 0x5402, 0x5411,  0x5412,     0x5413,     0x541b,     0x541c, 0x541d,
                                    0x5422, 0x5423, 0x5424, 0x15412, 0x80005412, 0x40005423, 0x8000541c, 0x5421, 0xffffffff};
static const uint32_t futex_ops[] = {0,   1,   4,   6,   9,   10,  11,  12,    13,    14,    127,        128,
                                     138, 139, 140, 141, 256, 267, 268, 0x10b, 0x18b, 0x18c, 0x8000000b, 0xffffffff};
static const uint32_t prctl_options[] = {0, 1, 15, 22, 34, 35, 36, 38, 61, 62, 63, 0x10023, 0x80000023, 0x53564d41, 0xffffffff};
static const uint32_t personalities[] = {0,       1,        8,        0x20000,    0x20008,    0x40000,    0x40001,   0x60000,
                                         0x80000, 0x400000, 0x440000, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff};
static const uint32_t modes[] = {0,      0644,    010644,  020001,  060001,  067777,  020000,  020666,  030000,  040755,     060000,
                                 060660, 0100644, 0120000, 0140777, 0160000, 0170000, 0200000, 0220000, 0260000, 0xffffffff, 04000,
                                 02000,  06000,   04755,   02755,   01777,   0104755, 0102755, 0106755, 010000};
static const uint32_t open_flags[] = {0,    1,     2,     0100,     0101,      0102,      0200,       0300,       01000,      0200000,
                                      0301, 01101, 04000, 02000100, 020000000, 020200002, 0x80000040, 0xffffffbf, 0xffbfffff, 0xffffffff};
static const uint32_t bits32[] = {
    0,          1u << 0,    1u << 1,    1u << 2,    1u << 3,    1u << 4,    1u << 5,  1u << 6,  1u << 7,  1u << 8,  1u << 9,   1u << 10,
    1u << 11,   1u << 12,   1u << 13,   1u << 14,   1u << 15,   1u << 16,   1u << 17, 1u << 18, 1u << 19, 1u << 20, 1u << 21,  1u << 22,
    1u << 23,   1u << 24,   1u << 25,   1u << 26,   1u << 27,   1u << 28,   1u << 29, 1u << 30, 1u << 31, 0x3d0f00, 0x1200011, 0x4111,
    0x10000011, 0x20004000, 0xdfffffff, 0x81fdffff, 0x7e020000, 0xffffffff, 3,        7,        0x22,     0x22022};

struct sample {
    const char *name;
    struct {
        int argument;
        const uint32_t *values;
        size_t count;
    } vary[3];
};

#define VARY(arg, list)                                                                                                                    \
    {                                                                                                                                      \
        arg, list, COUNT(list)                                                                                                             \
    }
static const struct sample samples[] = {
    {"socket", {VARY(0, families), VARY(1, types), VARY(2, protocols)}},
    {"socketpair", {VARY(0, families), VARY(1, types), VARY(2, protocols)}},
    {"setsockopt", {VARY(1, levels), VARY(2, options)}},
    {"ioctl", {VARY(1, commands)}},
    {"futex", {VARY(1, futex_ops)}},
    {"prctl", {VARY(0, prctl_options), VARY(1, prctl_options)}},
    {"personality", {VARY(0, personalities)}},
    {"mknod", {VARY(1, modes)}},
    {"mknodat", {VARY(1, modes), VARY(2, modes)}},
    {"chmod", {VARY(1, modes), VARY(2, modes)}},
    {"fchmod", {VARY(1, modes), VARY(2, modes)}},
    {"creat", {VARY(1, modes), VARY(2, modes)}},
    {"fchmodat", {VARY(1, modes), VARY(2, modes), VARY(3, modes)}},
    {"fchmodat2", {VARY(1, modes), VARY(2, modes), VARY(3, modes)}},
    {"open", {VARY(1, open_flags), VARY(2, modes), VARY(3, modes)}},
    {"openat", {VARY(1, modes), VARY(2, open_flags), VARY(3, modes)}},
    {"prlimit64", {VARY(0, bits32), VARY(1, options)}},
    {"clone", {VARY(0, bits32), VARY(1, bits32)}},
    {"pipe2", {VARY(0, bits32), VARY(1, bits32)}},
    {"sendto", {VARY(2, bits32), VARY(3, bits32)}},
    {"sendmsg", {VARY(2, bits32), VARY(3, bits32)}},
    {"sendmmsg", {VARY(2, bits32), VARY(3, bits32)}},
    {"mmap", {VARY(2, bits32), VARY(3, bits32)}},
    {"mprotect", {VARY(2, bits32)}},
    {"newfstatat", {VARY(2, bits32), VARY(3, bits32)}},
};

/* Each value stands with three high words: the kernel drops them, so they must change nothing. */
static void vary(const struct sample *s, size_t depth, struct seccomp_data *d, void (*each)(void *, const struct seccomp_data *), void *arg)
{
    static const uint64_t highs[] = {0, 1, 0xffffffff};
    if (depth == COUNT(s->vary) || !s->vary[depth].values) {
        each(arg, d);
        return;
    }
    for (size_t i = 0; i < s->vary[depth].count; i++)
        for (size_t h = 0; h < COUNT(highs); h++) {
            d->args[s->vary[depth].argument] = highs[h] << 32 | s->vary[depth].values[i];
            vary(s, depth + 1, d, each, arg);
        }
}

static const struct sample *sample_of(const char *name)
{
    for (size_t i = 0; i < COUNT(samples); i++)
        if (strcmp(samples[i].name, name) == 0)
            return &samples[i];
    return NULL;
}

static void compare_arguments(struct expectation *x)
{
    for (uint32_t nr = 0; nr < NUMBERS; nr++) {
        if (!x->rule[nr])
            continue;
        const struct sample *s = sample_of(x->line[nr]->name);
        if (!s) {
            fail_msg("%s: no arguments to try for %s", x->subject->name, x->line[nr]->name);
            return;
        }
        struct seccomp_data d = {.nr = (int)nr, .arch = NATIVE, .args = {77, 77, 77, 77, 77, 77}};
        vary(s, 0, &d, compare, x);
    }
}

static void program_answers_as_its_table_says(void **state)
{
    struct expectation x = {.subject = *state};
    const struct seccomp_program *p = program_of(x.subject);
    expect_lines(&x, x.subject->lines, x.subject->line_count);
    expect_lines(&x, x.subject->more, x.subject->more_count);
    compare_numbers(&x);
    compare_arguments(&x);
    for (size_t i = 0; i < p->len; i++)
        if (!x.reached[i])
            fail_msg("%s: no case meets instruction %zu", x.subject->name, i);
    print_message("%s: %u instructions, all met\n", x.subject->name, p->len);
}

static void program_is_one_the_kernel_takes(void **state)
{
    const struct subject *s = *state;
    const struct seccomp_program *p = program_of(s);
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
        struct seccomp_data d = {.arch = NATIVE};
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
    struct seccomp_data d = {.arch = NATIVE};
    for (d.nr = 0; d.nr < (int)NUMBERS; d.nr++)
        compare_with_init(NULL, &d);
    for (size_t i = 0; i < COUNT(payload_lines); i++) {
        const struct sample *s = sample_of(payload_lines[i].name);
        uint64_t nr;
        if (!s || !number_u64(payload_lines[i].number, NUMBERS, &nr))
            continue;
        d.nr = (int)nr;
        vary(s, 0, &d, compare_with_init, NULL);
    }
}

#define EACH(n)                                                                                                                            \
    {"program_is_one_the_kernel_takes", program_is_one_the_kernel_takes, NULL, NULL, &subjects[n]},                                        \
    {                                                                                                                                      \
        "program_answers_as_its_table_says", program_answers_as_its_table_says, NULL, NULL, &subjects[n]                                   \
    }

TESTS(EACH(0), EACH(1), EACH(2), EACH(3), EACH(4), EACH(5), cmocka_unit_test(interpreter_refuses_what_seccomp_would),
      cmocka_unit_test(no_profile_allows_the_doors_out), cmocka_unit_test(init_allows_all_that_any_profile_does))
