/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of system calls read a second time, for tests: what each program must answer, and every case worth asking it. The
 * interpreter, the kernel and the mutants are all asked the same. */
#pragma once

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>

#include "confine/seccomp.h"
#include "confine/seccomp_want.h"

#if defined(__x86_64__)
#define TABLE_NATIVE AUDIT_ARCH_X86_64
#define TABLE_FOREIGN AUDIT_ARCH_AARCH64
#define TABLE_HAS_X32 true
#else
#define TABLE_NATIVE AUDIT_ARCH_AARCH64
#define TABLE_FOREIGN AUDIT_ARCH_X86_64
#define TABLE_HAS_X32 false
#endif

#define TABLE_NUMBERS 1024u
#define TABLE_SUBJECTS 13

struct table_line;

/* One program. */
struct table_subject {
    const char *name;
    bool own;
    int which;      /* enum policy_seccomp or enum seccomp_own */
    uint32_t other; /* the answer for numbers that are in no table */
    unsigned profiles;
    const struct table_line *lines;
    size_t line_count;
    enum want_list list;
    const struct table_line *more;
    size_t more_count;
};
extern const struct table_subject table_subjects[TABLE_SUBJECTS];

const struct seccomp_program *table_program(const struct table_subject *s);

/* What a subject says about every number: the line, and the argument rule if it has one. */
struct table {
    const struct table_subject *subject;
    const struct table_line *line[TABLE_NUMBERS];
    want_rule *rule[TABLE_NUMBERS];
};

/* Fails the test where a rule has no second statement. */
void table_open(struct table *t, const struct table_subject *s);

uint32_t table_want(const struct table *t, const struct seccomp_data *d);

/* The name of a number, or "-". */
const char *table_name(const struct table *t, uint32_t nr);

typedef void table_case(void *arg, const struct seccomp_data *d);

/* Every architecture and number (0 to 1023, alone and with bits of other ABIs, and the edges beyond), with arguments that some
 * rule refuses or allows. brief: fewer arguments where the architecture is another's, and no high words. */
void table_each_number(bool brief, table_case *each, void *arg);

/* Every class of argument of every call that has rules: all that the rules name, their neighbours, and each with one bit changed;
 * and, unless brief, with the high words that the kernel drops. */
void table_each_argument(const struct table *t, bool brief, table_case *each, void *arg);
