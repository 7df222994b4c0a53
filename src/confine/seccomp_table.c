/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the second reading of the tables and the cases. */
#include "confine/seccomp_table.h"

#include "base/test.h"

#include <errno.h>
#include <linux/audit.h>

#include "base/number.h"
#include "confine/sysnr.h"

/* ---- the table, read once more ---- */

enum line_kind { LINE_NONE, LINE_ALLOW, LINE_DENY, LINE_ALLOW_IN, LINE_CHECK };

struct table_line {
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

static const struct table_line payload_lines[] = {
#include "confine/syscalls.def"
};
static const struct table_line keeper_lines[] = {
#include "confine/lists/keeper.def"
};
static const struct table_line init_lines[] = {
#include "confine/lists/init.def"
};
static const struct table_line reader_lines[] = {
#include "confine/lists/reader.def"
};
static const struct table_line daemon_lines[] = {
#include "confine/lists/daemon.def"
};
static const struct table_line dial_lines[] = {
#include "confine/lists/dial.def"
};
static const struct table_line warden_lines[] = {
#include "confine/lists/warden.def"
};
static const struct table_line mantle_lines[] = {
#include "confine/lists/mantle.def"
};
static const struct table_line gateway_lines[] = {
#include "confine/lists/gateway.def"
};
static const struct table_line tree_reader_lines[] = {
#include "confine/lists/tree_reader.def"
};
static const struct table_line tree_writer_lines[] = {
#include "confine/lists/tree_writer.def"
};
/* clang-format on */

/* ---- the programs ---- */

#define PAYLOAD payload_lines, COUNT(payload_lines), WANT_PAYLOAD
const struct table_subject table_subjects[TABLE_SUBJECTS] = {
    {"strict", false, SECCOMP_STRICT, FAILS(ENOSYS), IN_STRICT, PAYLOAD, NULL, 0},
    {"debug", false, SECCOMP_DEBUG, FAILS(ENOSYS), IN_DEBUG, PAYLOAD, NULL, 0},
    {"image-build", false, SECCOMP_IMAGE_BUILD, FAILS(ENOSYS), IN_IMAGE_BUILD, PAYLOAD, NULL, 0},
    {"init", true, OWN_INIT, FAILS(ENOSYS), IN_STRICT | IN_DEBUG | IN_IMAGE_BUILD, PAYLOAD, init_lines, COUNT(init_lines)},
    {"keeper", true, OWN_KEEPER, KILLED, 0, keeper_lines, COUNT(keeper_lines), WANT_KEEPER, NULL, 0},
    {"reader", true, OWN_READER, KILLED, 0, reader_lines, COUNT(reader_lines), WANT_READER, NULL, 0},
    {"daemon", true, OWN_DAEMON, KILLED, 0, daemon_lines, COUNT(daemon_lines), WANT_DAEMON, NULL, 0},
    {"dial", true, OWN_DIAL, KILLED, 0, dial_lines, COUNT(dial_lines), WANT_DIAL, NULL, 0},
    {"warden", true, OWN_WARDEN, KILLED, 0, warden_lines, COUNT(warden_lines), WANT_WARDEN, NULL, 0},
    {"mantle", true, OWN_MANTLE, KILLED, 0, mantle_lines, COUNT(mantle_lines), WANT_MANTLE, NULL, 0},
    {"gateway", true, OWN_GATEWAY, KILLED, 0, gateway_lines, COUNT(gateway_lines), WANT_GATEWAY, NULL, 0},
    {"tree-reader", true, OWN_TREE_READER, KILLED, 0, tree_reader_lines, COUNT(tree_reader_lines), WANT_TREE_READER, NULL, 0},
    {"tree-writer", true, OWN_TREE_WRITER, KILLED, 0, tree_writer_lines, COUNT(tree_writer_lines), WANT_TREE_WRITER, NULL, 0},
};

const struct seccomp_program *table_program(const struct table_subject *s)
{
    return s->own ? seccomp_for_program((enum seccomp_own)s->which) : seccomp_for((enum policy_seccomp)s->which);
}

static void expect_lines(struct table *t, const struct table_line *lines, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t nr;
        if (!number_u64(lines[i].number, TABLE_NUMBERS - 1, &nr))
            continue; /* not on this architecture; the generator has refused names that exist nowhere */
        t->line[nr] = &lines[i];
        t->rule[nr] = lines[i].kind == LINE_CHECK ? want_for(t->subject->list, lines[i].name) : NULL;
        if (lines[i].kind == LINE_CHECK && !t->rule[nr])
            fail_msg("%s: no second statement of the rules for %s", t->subject->name, lines[i].name);
    }
}

void table_open(struct table *t, const struct table_subject *s)
{
    *t = (struct table){.subject = s};
    expect_lines(t, s->lines, s->line_count);
    expect_lines(t, s->more, s->more_count);
}

const char *table_name(const struct table *t, uint32_t nr)
{
    return nr < TABLE_NUMBERS && t->line[nr] ? t->line[nr]->name : "-";
}

uint32_t table_want(const struct table *t, const struct seccomp_data *d)
{
    uint32_t nr = (uint32_t)d->nr;
    if (d->arch != TABLE_NATIVE)
        return KILLED;
    if (TABLE_HAS_X32 && nr >= 0x40000000 && nr != 0xffffffff)
        return KILLED;
    const struct table_line *l = nr < TABLE_NUMBERS ? t->line[nr] : NULL;
    if (!l)
        return t->subject->other;
    switch (l->kind) {
    case LINE_ALLOW:
        return ALLOWED;
    case LINE_DENY:
        return FAILS(l->err);
    case LINE_ALLOW_IN:
        return l->profiles & t->subject->profiles ? ALLOWED : FAILS(l->err);
    default:
        return t->rule[nr](t->subject->profiles, d->args);
    }
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

static void each_fill(struct seccomp_data *d, size_t fill, uint64_t high, table_case *each, void *arg)
{
    static const uint32_t bits[] = {0, 0x40000000, 0x80000000, 0xc0000000, 0x00010000};
    static const uint32_t edges[] = {0x3fffffff, 0x7fffffff, 0xfffffffe, 0xffffffff, TABLE_NUMBERS, TABLE_NUMBERS + 1};
    for (int i = 0; i < 6; i++)
        d->args[i] = high ? high << 32 | (uint32_t)fills[fill][i] : fills[fill][i];
    for (size_t b = 0; b < COUNT(bits); b++)
        for (uint32_t nr = 0; nr < TABLE_NUMBERS; nr++) {
            d->nr = (int)(nr | bits[b]);
            each(arg, d);
        }
    for (size_t i = 0; i < COUNT(edges); i++) {
        d->nr = (int)edges[i];
        each(arg, d);
    }
}

void table_each_number(bool brief, table_case *each, void *arg)
{
    /* The machines of the same kernel that have other numbers, their byte orders and ABIs, and what is no architecture. */
    static const uint32_t archs[] = {TABLE_NATIVE,
                                     TABLE_FOREIGN,
                                     AUDIT_ARCH_I386,
                                     AUDIT_ARCH_ARM,
                                     AUDIT_ARCH_ARMEB,
                                     AUDIT_ARCH_MIPS64,
                                     AUDIT_ARCH_RISCV64,
                                     AUDIT_ARCH_PPC64LE,
                                     AUDIT_ARCH_S390X,
                                     AUDIT_ARCH_IA64,
                                     EM_X86_64,
                                     EM_AARCH64,
                                     TABLE_NATIVE ^ 1,
                                     TABLE_NATIVE ^ 0x80000000,
                                     TABLE_NATIVE ^ 0x40000000,
                                     0,
                                     0xffffffff};
    for (size_t a = 0; a < COUNT(archs); a++) {
        struct seccomp_data d = {.arch = archs[a]};
        bool native = archs[a] == TABLE_NATIVE;
        for (size_t f = 0; f < (brief && !native ? 1 : COUNT(fills)); f++) {
            each_fill(&d, f, 0, each, arg);
            if (native && !brief) {
                each_fill(&d, f, 1, each, arg);
                each_fill(&d, f, 0xffffffff, each, arg);
            }
        }
    }
}

/* ---- every class of argument ---- */

/* All that a rule of any table names comes first in its list (CORE values), and is tried with each of its bits changed too; then
 * its neighbours and what looks like it, among that what rules name for another argument of the same call: a test must not look at
 * the wrong one. */
static const uint32_t families[] = {1,  2,  10, 16, 0,  3,  4,  5,  6,  7,  8,  9,       11,         12,         13, 14,  15, 17,
                                    18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29,      30,         31,         32, 33,  34, 35,
                                    36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 0x10001, 0xffffffff, 0x80000002, 58, 132, 262};
#define CORE_families 4
static const uint32_t types[] = {1,     2,     0,        3,        4,        5,    6,     10,         02000001,   02000002, 02000003, 04001,
                                 04002, 04003, 02004001, 02004002, 02004003, 0x11, 0x101, 0x80000001, 0xffffffff, 16,       17,       58};
#define CORE_types 2
static const uint32_t protocols[] = {0,  1,  6,  17, 58, 2,   3,   4,   5,   7,   9,   12,      15,         16,        18,
                                     33, 41, 50, 57, 59, 108, 132, 136, 255, 256, 262, 0x10000, 0x80000006, 0xffffffff};
#define CORE_protocols 5
static const uint32_t levels[] = {1, 6, 17, 0, 2, 5, 7, 16, 18, 41, 282, 0x80000006, 0x10006, 0xffffffff, 19, 26, 31, 50, 51, 52, 58, 100};
#define CORE_levels 3
static const uint32_t options[] = {19, 31, 26, 50, 51, 52, 100, 0,   1,          18,         20, 25, 27,
                                   30, 32, 35, 49, 53, 99, 101, 119, 0x8000001f, 0xffffffff, 6,  17, 16};
#define CORE_options 8
static const uint32_t commands[] = {0x5412, 0x541c, 0x5423, 0x5401,  0x5413,     0,          0x5402,     0x5411, 0x541b,
                                    0x541d, 0x5422, 0x5424, 0x15412, 0x80005412, 0x40005423, 0x8000541c, 0x5421, 0xffffffff};
#define CORE_commands 6
static const uint32_t futex_ops[] = {11,  12,  0,   1,   4,   6,     9,   10,    13,    14,         127,       128,
                                     138, 139, 140, 141, 256, 0x10b, 268, 0x18b, 0x18c, 0x8000000b, 0xffffffff};
#define CORE_futex_ops 3
static const uint32_t prctl_options[] = {35, 62, 0, 1, 15, 22, 34, 36, 38, 61, 63, 0x10023, 0x80000023, 0x53564d41, 0xffffffff};
#define CORE_prctl_options 3
static const uint32_t personalities[] = {0,       0xffffffff, 0x40000,  1,        8,          0x20000,    0x20008,   0x40001,
                                         0x60000, 0x80000,    0x400000, 0x440000, 0x7fffffff, 0x80000000, 0xfffffffe};
#define CORE_personalities 3
static const uint32_t modes[] = {0,       0644,       020666, 060660, 04755,   02755,   06000,   010644,  020001,  060001,  067777,
                                 020000,  030000,     040755, 060000, 0100644, 0120000, 0140777, 0160000, 0170000, 0200000, 0220000,
                                 0260000, 0xffffffff, 04000,  02000,  01777,   0104755, 0102755, 0106755, 010000};
#define CORE_modes 7
static const uint32_t open_flags[] = {0,     0100,     020000000, 0x400040,   1,          2,          0101,
                                      0102,  0200,     0300,      01000,      0200000,    0301,       01101,
                                      04000, 02000100, 020200002, 0x80000040, 0xffffffbf, 0xffbfffff, 0xffffffff};
#define CORE_open_flags 4
static const uint32_t bits32[] = {
    0,        3,        7,        0x22,     0x7e020000, 0x1200011,  0xffffffff, 1u << 0,    1u << 1,    1u << 2,  1u << 3,  1u << 4,
    1u << 5,  1u << 6,  1u << 7,  1u << 8,  1u << 9,    1u << 10,   1u << 11,   1u << 12,   1u << 13,   1u << 14, 1u << 15, 1u << 16,
    1u << 17, 1u << 18, 1u << 19, 1u << 20, 1u << 21,   1u << 22,   1u << 23,   1u << 24,   1u << 25,   1u << 26, 1u << 27, 1u << 28,
    1u << 29, 1u << 30, 1u << 31, 0x3d0f00, 0x4111,     0x10000011, 0x20004000, 0xdfffffff, 0x81fdffff, 0x22022};
#define CORE_bits32 7

struct sample {
    const char *name;
    struct {
        int argument;
        const uint32_t *values;
        size_t count, core;
    } vary[3];
};

#define VARY(arg, list)                                                                                                                    \
    {                                                                                                                                      \
        arg, list, COUNT(list), CORE_##list                                                                                                \
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

static void vary(const struct sample *s, size_t depth, bool brief, struct seccomp_data *d, table_case *each, void *arg)
{
    static const uint64_t highs[] = {0, 1, 0xffffffff};
    if (depth == COUNT(s->vary) || !s->vary[depth].values) {
        each(arg, d);
        return;
    }
    for (size_t i = 0; i < s->vary[depth].count; i++)
        for (size_t h = 0; h < (brief ? 1 : COUNT(highs)); h++) {
            d->args[s->vary[depth].argument] = highs[h] << 32 | s->vary[depth].values[i];
            vary(s, depth + 1, brief, d, each, arg);
        }
}

/* The core values of all arguments together, with one bit of one of them changed. */
static void flip(const struct sample *s, size_t depth, struct seccomp_data *d, table_case *each, void *arg)
{
    if (depth < COUNT(s->vary) && s->vary[depth].values) {
        for (size_t i = 0; i < s->vary[depth].core; i++) {
            d->args[s->vary[depth].argument] = s->vary[depth].values[i];
            flip(s, depth + 1, d, each, arg);
        }
        return;
    }
    for (size_t i = 0; i < depth; i++)
        for (int bit = 0; bit < 64; bit++) {
            d->args[s->vary[i].argument] ^= 1ull << bit;
            each(arg, d);
            d->args[s->vary[i].argument] ^= 1ull << bit;
        }
}

static const struct sample *sample_of(const char *name)
{
    for (size_t i = 0; i < COUNT(samples); i++)
        if (strcmp(samples[i].name, name) == 0)
            return &samples[i];
    return NULL;
}

void table_each_argument(const struct table *t, bool brief, table_case *each, void *arg)
{
    for (uint32_t nr = 0; nr < TABLE_NUMBERS; nr++) {
        if (!t->rule[nr])
            continue;
        const struct sample *s = sample_of(t->line[nr]->name);
        if (!s) {
            fail_msg("%s: no arguments to try for %s", t->subject->name, t->line[nr]->name);
            return;
        }
        struct seccomp_data d = {.nr = (int)nr, .arch = TABLE_NATIVE, .args = {77, 77, 77, 77, 77, 77}};
        vary(s, 0, brief, &d, each, arg);
        flip(s, 0, &d, each, arg);
    }
}
