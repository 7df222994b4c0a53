/* SPDX-License-Identifier: Apache-2.0 */
/* Can the comparison of programs with their tables fail? Every instruction of every program is changed in every way that a slip
 * of the generator, a flipped bit or a hand could change it, and each such mutant must be told from the right program by a case
 * that seccomp_test asks. Mutants that mean the same whatever they are asked are proved to, not guessed.
 *
 * How it works: cases are asked one by one. The right program's way through a case is noted; only mutants of instructions on that
 * way can answer otherwise, and only those that nobody has caught yet are run. */
#include "base/test.h"

#include <errno.h>
#include <stdlib.h>

#include "base/own.h"
#include "confine/bpf_run.h"
#include "confine/seccomp_table.h"

#define MUTANTS_MAX 40000
#define PER_INSTRUCTION_MAX 96

struct mutant {
    uint16_t at;
    bool caught;
    struct sock_filter insn;
};

struct hunt {
    struct table table;
    const struct seccomp_program *right;
    struct sock_filter code[BPF_MAXINSNS]; /* the program, with one instruction changed while a mutant runs */
    struct mutant mutants[MUTANTS_MAX];
    size_t count, caught;
    size_t first[BPF_MAXINSNS + 1];                                        /* mutants of one instruction lie together */
    uint16_t alive[BPF_MAXINSNS][PER_INSTRUCTION_MAX], left[BPF_MAXINSNS]; /* those not caught, counted from first */
};

/* ---- making them ---- */

static void add(struct hunt *h, size_t at, struct sock_filter insn)
{
    const struct sock_filter *was = &h->right->code[at];
    size_t left = h->right->len - at - 1;
    bool jump = BPF_CLASS(insn.code) == BPF_JMP;
    if (memcmp(&insn, was, sizeof(insn)) == 0)
        return;
    /* What the kernel would refuse to load is no mutant: bpf_check refuses it too, and that is tested elsewhere. */
    if (jump && BPF_OP(insn.code) == BPF_JA ? insn.k >= left : jump && (insn.jt >= left || insn.jf >= left))
        return;
    if (BPF_CLASS(insn.code) == BPF_LD && insn.k > sizeof(struct seccomp_data) - 4)
        return;
    assert_true(h->count < MUTANTS_MAX && h->left[at] < PER_INSTRUCTION_MAX);
    h->alive[at][h->left[at]++] = (uint16_t)(h->count - h->first[at]);
    h->mutants[h->count++] = (struct mutant){.at = (uint16_t)at, .insn = insn};
}

static void add_jumps(struct hunt *h, size_t at, struct sock_filter f)
{
    struct sock_filter m = f;
    m.jt = f.jf, m.jf = f.jt;
    add(h, at, m);
    for (int i = -2; i <= 2; i++) {
        m = f, m.jt = (uint8_t)(f.jt + i);
        add(h, at, m);
        m = f, m.jf = (uint8_t)(f.jf + i);
        add(h, at, m);
    }
    m = f, m.code ^= BPF_JEQ ^ BPF_JGE;
    add(h, at, m);
    m = f, m.k++;
    add(h, at, m);
    m = f, m.k--;
    add(h, at, m);
}

static void mutate(struct hunt *h, size_t at)
{
    static const uint32_t answers[] = {ALLOWED, KILLED, SECCOMP_RET_LOG, SECCOMP_RET_TRAP, FAILS(EPERM), FAILS(ENOSYS), FAILS(0)};
    struct sock_filter f = h->right->code[at], m;
    /* Nothing in its place: the next instruction is met at once. */
    if (BPF_CLASS(f.code) != BPF_RET)
        add(h, at, (struct sock_filter){BPF_JMP | BPF_JA, 0, 0, 0});
    if (BPF_CLASS(f.code) == BPF_RET) {
        for (size_t i = 0; i < COUNT(answers); i++)
            add(h, at, (struct sock_filter){f.code, 0, 0, answers[i]});
    } else if (BPF_CLASS(f.code) == BPF_LD) {
        for (uint32_t k = 0; k < sizeof(struct seccomp_data); k += 4)
            add(h, at, (struct sock_filter){f.code, 0, 0, k});
        return;
    } else if (f.code == (BPF_JMP | BPF_JA)) {
        for (uint32_t i = 1; i < 4; i++) {
            m = f, m.k += i;
            add(h, at, m);
            m = f, m.k -= i;
            add(h, at, m);
        }
        return;
    } else if (BPF_CLASS(f.code) == BPF_JMP) {
        add_jumps(h, at, f);
    }
    for (int bit = 0; bit < 32; bit++) {
        m = f, m.k ^= 1u << bit;
        add(h, at, m);
    }
}

/* ---- hunting them ---- */

static void hunt_with(void *arg, const struct seccomp_data *d)
{
    struct hunt *h = arg;
    static bool met[BPF_MAXINSNS], ignored[BPF_MAXINSNS];
    uint32_t want = 0;
    memset(met, 0, h->right->len);
    assert_true(bpf_run(h->code, h->right->len, d, met, &want));
    assert_int_equal(want, table_want(&h->table, d));
    for (size_t at = 0; at < h->right->len; at++) {
        if (!met[at])
            continue;
        for (size_t i = 0; i < h->left[at];) {
            struct mutant *m = &h->mutants[h->first[at] + h->alive[at][i]];
            uint32_t got = 0;
            h->code[at] = m->insn;
            bool ran = bpf_run(h->code, h->right->len, d, ignored, &got);
            if (ran && got == want) {
                i++;
                continue;
            }
            m->caught = true;
            h->caught++;
            h->alive[at][i] = h->alive[at][--h->left[at]];
        }
        h->code[at] = h->right->code[at];
    }
}

/* ---- those that mean the same ----
 *
 * A mutant that no case caught is followed on every way that it and the right program can take together, with what is known of each
 * word of the data on that way: between which numbers it lies and which of its bits are sure. If both give the same answer at the
 * end of every way, no data whatever can tell them apart. */

struct word {
    uint32_t low, high, ones, zeros;
};

/* A test that was made on the way, and how it went. */
struct fact {
    uint32_t word, mask, k;
    uint16_t code;
    bool yes;
};

#define FACTS_MAX 64
#define FEW_BITS 7

struct known {
    struct word word[sizeof(struct seccomp_data) / 4];
    struct fact fact[FACTS_MAX];
    size_t facts;
};

/* The accumulator: some bits of one word. */
struct held {
    uint32_t word, mask;
};

/* Bits in which both ends agree are sure. */
static bool settle(struct word *w)
{
    uint32_t apart = w->low ^ w->high, alike = apart ? ~(UINT32_MAX >> __builtin_clz(apart)) : UINT32_MAX;
    if (w->low > w->high)
        return false;
    w->ones |= w->low & alike;
    w->zeros |= ~w->low & alike;
    return (w->ones & w->zeros) == 0;
}

/* Adds that a whole word is k, or is not; false if that cannot be. */
static bool learn_equal(struct word *w, uint32_t k, bool yes)
{
    if (yes) {
        if ((k & w->zeros) || (~k & w->ones) || k < w->low || k > w->high)
            return false;
        w->low = w->high = k;
        return settle(w);
    }
    if (w->low == k && w->low++ == w->high)
        return false;
    w->high -= w->high == k;
    return settle(w);
}

/* Adds that a whole word is k or more, or is less. */
static bool learn_reach(struct word *w, uint32_t k, bool yes)
{
    if (yes && k > w->low)
        w->low = k;
    if (!yes && k == 0)
        return false;
    if (!yes && k - 1 < w->high)
        w->high = k - 1;
    return settle(w);
}

/* Adds the outcome of a test; false if it cannot be. Of a part of a word it is only noted, unless every bit of it is sure. */
static bool learn(struct known *known, struct held held, const struct sock_filter *f, bool yes)
{
    struct word *w = &known->word[held.word];
    bool equal = BPF_OP(f->code) == BPF_JEQ;
    for (size_t i = 0; i < known->facts; i++) {
        const struct fact *t = &known->fact[i];
        if (t->word == held.word && t->mask == held.mask && t->k == f->k && t->code == f->code && t->yes != yes)
            return false;
        /* It is one value already, and so no other. */
        if (t->word == held.word && t->mask == held.mask && equal && BPF_OP(t->code) == BPF_JEQ && t->yes && t->k != f->k && yes)
            return false;
    }
    if (held.mask == UINT32_MAX && !(equal ? learn_equal : learn_reach)(w, f->k, yes))
        return false;
    uint32_t sure = w->ones & held.mask;
    if ((held.mask & ~(w->ones | w->zeros)) == 0 && (equal ? sure == f->k : sure >= f->k) != yes)
        return false;
    assert_true(known->facts < FACTS_MAX);
    known->fact[known->facts++] = (struct fact){held.word, held.mask, f->k, f->code, yes};
    return true;
}

struct proof {
    const struct sock_filter *right;
    struct sock_filter changed;
    size_t at;
    struct held held; /* when the changed instruction is met */
};

enum stage { BEFORE, RIGHT, MUTANT };

static bool follow(struct proof *p, enum stage stage, size_t pc, struct held held, const struct known *known, uint32_t answer);

/* The same with each value that a few bits of a word can have. */
static bool follow_each(struct proof *p, enum stage stage, size_t pc, struct held held, const struct known *known, uint32_t answer)
{
    const struct word *w = &known->word[held.word];
    uint32_t open = held.mask & ~(w->ones | w->zeros), value = 0;
    do {
        struct known more = *known;
        more.word[held.word].ones |= value;
        more.word[held.word].zeros |= open & ~value;
        if (!follow(p, stage, pc, held, &more, answer))
            return false;
        value = (value - open) & open;
    } while (value);
    return true;
}

/* Follows the right program up to the changed instruction and from there to its answer, then the mutant. */
static bool follow(struct proof *p, enum stage stage, size_t pc, struct held held, const struct known *known, uint32_t answer)
{
    for (;; pc++) {
        if (stage == BEFORE && pc == p->at) {
            p->held = held;
            stage = RIGHT;
        }
        struct sock_filter f = stage == MUTANT && pc == p->at ? p->changed : p->right[pc];
        switch (f.code) {
        case BPF_LD | BPF_W | BPF_ABS:
            held = (struct held){f.k / 4, UINT32_MAX};
            break;
        case BPF_ALU | BPF_AND | BPF_K:
            held.mask &= f.k;
            if (__builtin_popcount(held.mask) <= FEW_BITS)
                return follow_each(p, stage, pc + 1, held, known, answer);
            break;
        case BPF_JMP | BPF_JA:
            pc += f.k;
            break;
        case BPF_RET | BPF_K:
            return stage == BEFORE || (stage == RIGHT ? follow(p, MUTANT, p->at, p->held, known, f.k) : f.k == answer);
        default:
            for (int yes = 0; yes < 2; yes++) {
                struct known more = *known;
                if (learn(&more, held, &f, yes) && !follow(p, stage, pc + 1 + (yes ? f.jt : f.jf), held, &more, answer))
                    return false;
            }
            return true;
        }
    }
}

static bool is_equivalent(const struct hunt *h, const struct mutant *m)
{
    struct proof p = {.right = h->right->code, .changed = m->insn, .at = m->at};
    static struct known nothing;
    struct held none = {0, 0};
    for (size_t i = 0; i < COUNT(nothing.word); i++)
        nothing.word[i] = (struct word){0, UINT32_MAX, 0, 0};
    return follow(&p, BEFORE, 0, none, &nothing, 0);
}

static int make(void **state)
{
    struct hunt *h = calloc(1, sizeof(*h));
    if (!h)
        return -1;
    table_open(&h->table, *state);
    h->right = table_program(*state);
    memcpy(h->code, h->right->code, h->right->len * sizeof(h->code[0]));
    *state = h;
    return 0;
}

static int unmake(void **state)
{
    free(*state);
    return 0;
}

static void every_mutant_is_caught_or_means_the_same(void **state)
{
    struct hunt *h = *state;
    for (size_t i = 0; i < h->right->len; i++) {
        h->first[i] = h->count;
        mutate(h, i);
    }
    table_each_number(true, hunt_with, h);
    table_each_argument(&h->table, true, hunt_with, h);
    size_t same = 0, missed = 0;
    for (size_t i = 0; i < h->count; i++) {
        const struct mutant *m = &h->mutants[i];
        if (m->caught)
            continue;
        if (is_equivalent(h, m)) {
            same++;
            continue;
        }
        const struct sock_filter *f = &h->right->code[m->at];
        if (missed++ < 40)
            print_message("%s: not caught at %u: {%02x %u %u %08x} as {%02x %u %u %08x}\n", h->table.subject->name, m->at, f->code, f->jt,
                          f->jf, f->k, m->insn.code, m->insn.jt, m->insn.jf, m->insn.k);
    }
    print_message("%s: %zu mutants, %zu caught, %zu mean the same, %zu missed\n", h->table.subject->name, h->count, h->caught, same,
                  missed);
    assert_int_equal(missed, 0);
    assert_true(h->caught > 20 * (size_t)h->right->len);
}

#define EACH(n)                                                                                                                            \
    {                                                                                                                                      \
        "every_mutant_is_caught_or_means_the_same", every_mutant_is_caught_or_means_the_same, make, unmake, (void *)&table_subjects[n]     \
    }

TESTS(EACH(0), EACH(1), EACH(2), EACH(3), EACH(4), EACH(5))
