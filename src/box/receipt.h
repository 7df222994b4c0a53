/* SPDX-License-Identifier: Apache-2.0 */
/* Receipts: what the prober could do in a box against what the policy expects, and what the keeper sees of the box from outside. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/json.h"
#include "init/probe.h"
#include "policy/policy.h"

enum receipt_space { SPACE_USER, SPACE_MOUNT, SPACE_PID, SPACE_NET, SPACE_IPC, SPACE_UTS, SPACE_CGROUP, SPACE_COUNT };

#define RECEIPT_OUTSIDE_MAX 12
#define RECEIPT_ROWS_MAX (PROBE_COUNT + RECEIPT_OUTSIDE_MAX)

struct receipt_row {
    const char *name, *defence;
    char expected[40], observed[40];
    bool good;
};

/* What the keeper knows and the prober cannot: what to expect, and what is to be seen from outside. */
struct receipt_facts {
    uint32_t uid;
    uint64_t processes;               /* 0: no limit */
    uint32_t host_space[SPACE_COUNT]; /* the keeper's own namespaces; 0: not to be seen, which is a doubt */
    uint32_t init_user_space;
    int landlock_left;      /* domains the keeper itself could still enter; -1 is a doubt */
    uint64_t scratch_bytes; /* 0: no limit */
    bool full;
    enum policy_network network;
    bool image;                                      /* its root is its own to write, and its user looks like root */
    bool has_planted;                                /* a file of the host's that a box cannot have put in its own place */
    bool has_listeners;                              /* on the host, for the full probe to look for */
    struct receipt_row outside[RECEIPT_OUTSIDE_MAX]; /* good is set here */
    size_t outside_count;
};

struct receipt {
    bool full;
    uint32_t took_us;
    size_t count, bad;
    struct receipt_row row[RECEIPT_ROWS_MAX];
};

/* Reads the keeper's own namespaces. */
void receipt_spaces(uint32_t ret[SPACE_COUNT]);

/* Adds a line of the keeper's own. */
void receipt_outside(struct receipt_facts *f, const char *name, const char *defence, const char *expected, const char *observed);

/* Judges the prober's report, which is n hostile bytes. Fails if it is no report. */
int receipt_judge(const struct receipt_facts *f, const void *report, size_t n, struct receipt *ret, struct pale_err *e) MUST_CHECK;

/* One sentence: which defences are missing, with the first attempt that shows each. */
void receipt_complaint(const struct receipt *r, char *ret, size_t cap);

/* What stands in a receipt besides its lines. */
struct receipt_head {
    const char *box, *id, *time, *tier, *kernel, *boot, *build, *policy_digest;
    const char *proved; /* of a short one: the digest of the full one of the same boot, tier, policy and build; else NULL */
};

/* The whole receipt as an object; key is NULL at the top. */
void receipt_json(const struct receipt *r, const struct receipt_head *h, struct json *j, const char *key);

/* "name=observed" of every line, for a record that is written at every start. */
void receipt_brief(const struct receipt *r, struct buf *out);
