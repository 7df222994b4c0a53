/* SPDX-License-Identifier: Apache-2.0 */
/* seccompgen: turns the tables of system calls into BPF programs when we build, so that locking up costs one call.
 *
 * How it works: every table is a list of rows (syscalls.def says what they mean). For one program the rows become a
 * sorted list of spans of numbers that share an answer; a balanced search over the spans leads to a constant answer,
 * which the kernel then remembers per number, or to the argument tests of one call. The program is written from its end
 * to its start: each target is then known when a jump to it is made, and a target beyond the 255 instructions that a
 * jump can pass is repeated (an answer) or reached by a long jump (all else).
 *
 * It is built for the machine the programs are for, since numbers come from that machine's headers. Any doubt about a
 * table (an unknown name, a name twice, a rule without its call) ends the build. */
#include <assert.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/futex.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <linux/udp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/number.h"
#include "confine/sysnr.h"

#ifndef PR_SCHED_CORE
#define PR_SCHED_CORE 62
#endif

#if defined(__x86_64__)
#define OUR_ARCH AUDIT_ARCH_X86_64
#define X32_BIT 0x40000000u
#elif defined(__aarch64__)
#define OUR_ARCH AUDIT_ARCH_AARCH64
#define X32_BIT 0u
#else
#error "say here which AUDIT_ARCH_ value this architecture has"
#endif

/* Longest rule and longest set of values in the tables. */
#define CONDITIONS_MAX 3
#define VALUES_MAX 6
#define SPANS_MAX 1024

/* Words the tables use. CLONE_NAMESPACES is all seven CLONE_NEW… flags that clone takes (time has no bit there); CREATE_BITS are
 * those with which open looks at a mode. */
#define PASS SECCOMP_RET_ALLOW
#define NO(err) (SECCOMP_RET_ERRNO | (err))
#define KILL SECCOMP_RET_KILL_PROCESS
#define ALL_BITS 0xffffffffu
#define CLONE_NAMESPACES 0x7E020000u
#define SOCKET_TYPE_BITS (~(uint32_t)(SOCK_CLOEXEC | SOCK_NONBLOCK))
#define SETID_BITS (S_ISUID | S_ISGID)
#define TMPFILE_BIT (O_TMPFILE & ~O_DIRECTORY)
#define CREATE_BITS (O_CREAT | TMPFILE_BIT)
#define O_NOTIFICATION_PIPE O_EXCL /* as linux/watch_queue.h, which not every libc goes with */

enum { FOR_STRICT = 1, FOR_DEBUG = 2, FOR_IMAGE_BUILD = 4, FOR_EVERY = 7 };

struct condition {
    uint8_t argument, count;
    uint32_t mask, values[VALUES_MAX];
};

enum row_kind { ROW_DEFAULT, ROW_CALL, ROW_CHECK, ROW_RULE };

struct row {
    enum row_kind kind;
    const char *name, *number; /* the number is text: the name itself where this architecture has no such call */
    unsigned allowed;          /* profiles a call is allowed in, or a rule holds in */
    uint32_t answer;           /* elsewhere, or when no rule matches; of a rule: when it matches */
    struct condition when[CONDITIONS_MAX];
};

/* clang-format off */
#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
/* A reason is part of the table's syntax: a row with none that deserves the word does not compile. */
#define WITH_REASON(why) sizeof(char[sizeof(why) > 4 ? 1 : -1])
#define CALL(kind, n, in, ans, why) {kind, #n, TEXT(__NR_##n), (in) * WITH_REASON(why), ans, {{0}}},
#define DEFAULT(ans) {ROW_DEFAULT, "default", "", FOR_EVERY, ans, {{0}}},
#define ALLOW(n, why) CALL(ROW_CALL, n, FOR_EVERY, PASS, why)
#define DENY(n, err, why) CALL(ROW_CALL, n, 0, NO(err), why)
#define ALLOW_IN(n, profile, err, why) CALL(ROW_CALL, n, FOR_##profile, NO(err), why)
#define CHECK(n, ans, why) CALL(ROW_CHECK, n, FOR_EVERY, ans, why)
#define IN(arg, bits, ...) {arg, sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t), bits, {__VA_ARGS__}}
#define WHEN(...) {__VA_ARGS__}
#define RULE(n, profile, ans, when, why) {ROW_RULE, #n, TEXT(__NR_##n), FOR_##profile * WITH_REASON(why), ans, when},

static const struct row payload_rows[] = {
#include "confine/syscalls.def"
};
static const struct row keeper_rows[] = {
#include "confine/lists/keeper.def"
};
static const struct row init_rows[] = {
#include "confine/lists/init.def"
};
static const struct row reader_rows[] = {
#include "confine/lists/reader.def"
};
static const struct row daemon_rows[] = {
#include "confine/lists/daemon.def"
};
static const struct row dial_rows[] = {
#include "confine/lists/dial.def"
};
static const struct row warden_rows[] = {
#include "confine/lists/warden.def"
};
static const struct row mantle_rows[] = {
#include "confine/lists/mantle.def"
};
static const struct row gateway_rows[] = {
#include "confine/lists/gateway.def"
};
static const struct row tree_reader_rows[] = {
#include "confine/lists/tree_reader.def"
};
static const struct row tree_writer_rows[] = {
#include "confine/lists/tree_writer.def"
};
/* clang-format on */

#define ROWS(r) r, sizeof(r) / sizeof((r)[0])

/* A program is a table seen through one profile, or through all at once (everything that any of them allows), with rows
 * of a second table in place of its own. */
static const struct list {
    const char *name;
    const struct row *rows;
    size_t count;
    unsigned profile; /* FOR_EVERY: what any profile allows */
    const struct row *instead;
    size_t instead_count;
} lists[] = {
    {"strict", ROWS(payload_rows), FOR_STRICT, NULL, 0},
    {"debug", ROWS(payload_rows), FOR_DEBUG, NULL, 0},
    {"image_build", ROWS(payload_rows), FOR_IMAGE_BUILD, NULL, 0},
    {"keeper", ROWS(keeper_rows), FOR_EVERY, NULL, 0},
    {"init", ROWS(payload_rows), FOR_EVERY, ROWS(init_rows)},
    {"reader", ROWS(reader_rows), FOR_EVERY, NULL, 0},
    {"daemon", ROWS(daemon_rows), FOR_EVERY, NULL, 0},
    {"dial", ROWS(dial_rows), FOR_EVERY, NULL, 0},
    {"warden", ROWS(warden_rows), FOR_EVERY, NULL, 0},
    {"mantle", ROWS(mantle_rows), FOR_EVERY, NULL, 0},
    {"gateway", ROWS(gateway_rows), FOR_EVERY, NULL, 0},
    {"tree_reader", ROWS(tree_reader_rows), FOR_EVERY, NULL, 0},
    {"tree_writer", ROWS(tree_writer_rows), FOR_EVERY, NULL, 0},
};

/* Numbers from `first` up to the next span's first have one answer, or are one call with rules. */
struct span {
    uint32_t first, answer;
    const struct row *check;
};

struct builder {
    const struct list *list;
    struct span spans[SPANS_MAX];
    size_t span_count;
    struct sock_filter code[BPF_MAXINSNS]; /* last instruction first */
    size_t count;
    struct {
        uint32_t answer;
        size_t label;
    } answers[8]; /* where each answer was last written */
    size_t answer_count;
};

static void fail(const struct list *l, const char *what, const char *name)
{
    fprintf(stderr, "seccompgen: %s: %s: %s\n", l->name, name, what);
    exit(1);
}

/* ---- writing instructions, last one first; a label is an instruction's place counted from the end ---- */

static size_t emit(struct builder *b, struct sock_filter insn)
{
    if (b->count == BPF_MAXINSNS)
        fail(b->list, "more instructions than the kernel takes", "program");
    b->code[b->count] = insn;
    return b->count++;
}

static size_t distance(const struct builder *b, size_t label)
{
    return b->count - label - 1;
}

static bool is_near(const struct builder *b, size_t label)
{
    /* One less than a jump can pass, since the other branch may still put a long jump between. */
    return distance(b, label) < UINT8_MAX;
}

static size_t answer_label(struct builder *b, uint32_t answer)
{
    size_t i = 0;
    while (i < b->answer_count && b->answers[i].answer != answer)
        i++;
    if (i < b->answer_count && is_near(b, b->answers[i].label))
        return b->answers[i].label;
    assert(i < sizeof(b->answers) / sizeof(b->answers[0]));
    if (i == b->answer_count)
        b->answer_count++;
    b->answers[i].answer = answer;
    b->answers[i].label = emit(b, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, answer));
    return b->answers[i].label;
}

/* The label, or one nearby that leads or answers the same. */
static size_t near_label(struct builder *b, size_t label)
{
    if (is_near(b, label))
        return label;
    if (b->code[label].code == (BPF_RET | BPF_K))
        return answer_label(b, b->code[label].k);
    return emit(b, (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, (uint32_t)distance(b, label)));
}

static size_t emit_jump(struct builder *b, uint16_t test, uint32_t k, size_t yes, size_t no)
{
    yes = near_label(b, yes);
    no = near_label(b, no);
    assert(distance(b, yes) <= UINT8_MAX && distance(b, no) <= UINT8_MAX);
    return emit(b, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_K | test, k, (uint8_t)distance(b, yes), (uint8_t)distance(b, no)));
}

static size_t emit_load(struct builder *b, uint32_t offset)
{
    return emit(b, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset));
}

/* ---- argument rules ---- */

static size_t emit_condition(struct builder *b, const struct condition *c, size_t yes, size_t no)
{
    for (size_t i = c->count; i-- > 0;)
        no = emit_jump(b, BPF_JEQ, c->values[i], yes, no);
    if (c->mask != ALL_BITS)
        emit(b, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, c->mask));
    static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the low word of an argument comes first");
    return emit_load(b, (uint32_t)(offsetof(struct seccomp_data, args) + 8u * c->argument));
}

/* Is the row there in this list's profile? Where a list is the sum of the profiles, a permission holds if any has it and
 * a refusal only if all have it. */
static bool holds(const struct list *l, const struct row *r)
{
    if (l->profile != FOR_EVERY)
        return r->allowed & l->profile;
    return r->answer == PASS ? r->allowed != 0 : r->allowed == FOR_EVERY;
}

static size_t emit_check(struct builder *b, const struct row *check)
{
    const struct row *last = check;
    const struct row *end = b->list->rows + b->list->count;
    if (b->list->instead && check >= b->list->instead && check < b->list->instead + b->list->instead_count)
        end = b->list->instead + b->list->instead_count;
    while (last + 1 < end && last[1].kind == ROW_RULE)
        last++;
    size_t no = answer_label(b, check->answer);
    for (const struct row *r = last; r > check; r--) {
        if (!holds(b->list, r))
            continue;
        size_t yes = answer_label(b, r->answer);
        for (size_t i = CONDITIONS_MAX; i-- > 0;)
            if (r->when[i].count)
                yes = emit_condition(b, &r->when[i], yes, no);
        no = yes;
    }
    return no;
}

/* ---- the search ---- */

static size_t emit_search(struct builder *b, size_t first, size_t count)
{
    const struct span *s = &b->spans[first];
    if (count == 1)
        return s->check ? emit_check(b, s->check) : answer_label(b, s->answer);
    size_t half = count / 2;
    size_t above = emit_search(b, first + half, count - half);
    size_t below = emit_search(b, first, half);
    return emit_jump(b, BPF_JGE, s[half].first, above, below);
}

static void emit_program(struct builder *b)
{
    size_t start = emit_search(b, 0, b->span_count);
    /* The search begins with the jump written last, so the load of the number runs straight into it. */
    if (start != b->count - 1)
        fail(b->list, "the search does not start where it should", "program");
    emit_load(b, offsetof(struct seccomp_data, nr));
    size_t right_arch = b->count - 1;
    size_t wrong_arch = answer_label(b, KILL);
    emit_jump(b, BPF_JEQ, OUR_ARCH, right_arch, wrong_arch);
    emit_load(b, offsetof(struct seccomp_data, arch));
}

/* ---- from rows to spans ---- */

static bool row_number(const struct list *l, const struct row *r, uint32_t *ret)
{
    uint64_t n;
    if (number_u64(r->number, SPANS_MAX, &n)) {
        *ret = (uint32_t)n;
        return true;
    }
#ifdef __x86_64__
    /* Every name in the tables exists here, so an unknown one is a slip of the pen. */
    fail(l, "no such system call", r->name);
#endif
    (void)l;
    return false;
}

static void check_rows(const struct list *l, const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct row *r = &rows[i];
        bool after_own = i > 0 && rows[i - 1].kind >= ROW_CHECK && strcmp(rows[i - 1].name, r->name) == 0;
        if (r->kind == ROW_RULE && !after_own)
            fail(l, "a rule must follow its CHECK", r->name);
        if (r->kind == ROW_CHECK && (i + 1 == count || rows[i + 1].kind != ROW_RULE))
            fail(l, "a CHECK has no rule", r->name);
        for (size_t k = i + 1; k < count && r->kind != ROW_RULE; k++)
            if (rows[k].kind != ROW_RULE && strcmp(rows[k].name, r->name) == 0)
                fail(l, "is there twice", r->name);
    }
}

/* Puts the calls of one table at their numbers; a table placed later overrides. */
static void place_rows(const struct list *l, const struct row *rows, size_t count, struct span *ret)
{
    check_rows(l, rows, count);
    for (size_t i = 0; i < count; i++) {
        const struct row *r = &rows[i];
        uint32_t n;
        if ((r->kind != ROW_CALL && r->kind != ROW_CHECK) || !row_number(l, r, &n))
            continue;
        bool allowed = r->kind == ROW_CALL && (l->profile == FOR_EVERY ? r->allowed != 0 : (r->allowed & l->profile));
        ret[n] = (struct span){.answer = allowed ? PASS : r->answer, .check = r->kind == ROW_CHECK ? r : NULL};
    }
}

static void add_span(struct builder *b, uint32_t first, const struct span *s)
{
    const struct span *last = b->span_count ? &b->spans[b->span_count - 1] : NULL;
    if (last && !last->check && !s->check && last->answer == s->answer)
        return;
    if (b->span_count == SPANS_MAX)
        fail(b->list, "too many spans", "program");
    b->spans[b->span_count] = *s;
    b->spans[b->span_count++].first = first;
}

static void make_spans(struct builder *b)
{
    static struct span by_number[SPANS_MAX + 1];
    const struct list *l = b->list;
    if (l->rows[0].kind != ROW_DEFAULT)
        fail(l, "the first row is not the default", l->rows[0].name);
    struct span other = {.answer = l->rows[0].answer};
    for (size_t i = 0; i <= SPANS_MAX; i++)
        by_number[i] = other;
    place_rows(l, l->rows, l->count, by_number);
    place_rows(l, l->instead, l->instead_count, by_number);
    for (uint32_t i = 0; i <= SPANS_MAX; i++)
        add_span(b, i, &by_number[i]);
    if (X32_BIT) {
        /* The second ABI of x86-64 is a second way to every call. The number -1 is no call at all: a tracer writes it
         * to have one skipped, so it gets the answer of an unknown number. */
        add_span(b, X32_BIT, &(struct span){.answer = KILL});
        add_span(b, UINT32_MAX, &other);
    }
}

static void print_program(const struct builder *b)
{
    printf("static const struct sock_filter code_%s[] = {\n", b->list->name);
    for (size_t i = b->count; i-- > 0;) {
        const struct sock_filter *f = &b->code[i];
        printf("    {0x%02x, %u, %u, 0x%08x},\n", f->code, f->jt, f->jf, f->k);
    }
    printf("};\n");
}

int main(void)
{
    static struct builder b;
    printf("/* Made by seccompgen from confine/syscalls.def and confine/lists. */\n");
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        b = (struct builder){.list = &lists[i]};
        make_spans(&b);
        emit_program(&b);
        print_program(&b);
    }
    return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}
