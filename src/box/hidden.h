/* SPDX-License-Identifier: Apache-2.0 */
/* Which folders are hidden in what a box is shown: the .pale of every project of the user, wherever a shared folder shows it. */
#pragma once

#include <stddef.h>

#include "base/err.h"
#include "base/own.h"
#include "policy/policy.h"

struct hidden {
    char **path; /* as the box would see them */
    size_t count, room;
};

void hidden_done(struct hidden *h);
#define own_hidden CLEANUP(hidden_done) struct hidden

/* Looks for nothing if the policy shows no host folder. */
int hidden_find(const struct policy *p, struct hidden *ret, struct pale_err *e) MUST_CHECK;
