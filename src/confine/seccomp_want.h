/* SPDX-License-Identifier: Apache-2.0 */
/* The argument rules of the system call tables, stated a second time in plain C and bare numbers, for tests: a slip in a
 * table, the generator or a header then shows as a difference. */
#pragma once

#include <linux/seccomp.h>
#include <stdint.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define ALLOWED SECCOMP_RET_ALLOW
#define KILLED SECCOMP_RET_KILL_PROCESS
#define FAILS(err) (SECCOMP_RET_ERRNO | (uint32_t)(err))

/* Profiles, as a set: init's list is the sum of all. */
enum { IN_STRICT = 1, IN_DEBUG = 2, IN_IMAGE_BUILD = 4 };

enum want_list {
    WANT_PAYLOAD,
    WANT_KEEPER,
    WANT_READER,
    WANT_DAEMON,
    WANT_DIAL,
    WANT_WARDEN,
    WANT_MANTLE,
    WANT_GATEWAY,
    WANT_TREE_READER,
    WANT_TREE_WRITER
};

typedef uint32_t want_rule(unsigned profiles, const __u64 *arg);

/* What a call with these six arguments should get; NULL where a list has no rule for the call. */
want_rule *want_for(enum want_list list, const char *call);
