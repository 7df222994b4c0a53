/* SPDX-License-Identifier: Apache-2.0 */
/* The survey: every mechanism the walls rest on, tried on this host, with the claims that fall away without it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "confine/attempt.h"

/* What the mechanisms are tried on. */
struct survey_target {
    const char *data_dir; /* an existing folder on the file system of the boxes' data */
};

struct survey_row {
    const char *group, *name;
    bool required;       /* without it no box starts */
    const char *claims;  /* of docs/threat-model.md, as "C1 C2"; "" for none */
    const char *remedy;  /* what to do when it is not ok */
    attempt_fn *attempt; /* tried in a child made with these flags; its arg is the target … */
    uint64_t flags;
    void (*look)(const struct survey_row *row, struct answer *ret); /* … or looked at from here */
};

/* The tables, ended by a row without name: what walls are made of, and what else the host is like. */
extern const struct survey_row survey_wall[], survey_host[];

/* Tries one. */
static inline void survey_try(const struct survey_row *row, const struct survey_target *t, struct answer *ret)
{
    if (row->look)
        row->look(row, ret);
    else
        attempt_run(row->flags, row->attempt, t, ret);
}
