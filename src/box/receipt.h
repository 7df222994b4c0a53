/* SPDX-License-Identifier: Apache-2.0 */
/* Receipts: what the prober could do in a box against what the policy expects. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/json.h"
#include "policy/policy.h"

#define RECEIPT_ROWS_MAX 64

struct receipt {
    size_t count, bad;
    struct receipt_row {
        char name[40], expected[48], observed[24];
        bool good;
    } row[RECEIPT_ROWS_MAX];
};

/* Judges the prober's lines ("name<TAB>answer"), which are hostile: every expected attempt must be there once, and no other. */
int receipt_judge(const struct policy *p, const char *lines, struct receipt *ret, struct pale_err *e) MUST_CHECK;

void receipt_json(const struct receipt *r, const struct policy *p, const char *box, struct json *j);
