/* SPDX-License-Identifier: Apache-2.0 */
/* What pale-steward wants of a verb that it runs for somebody else: who that is, whose box it is about, and the policy he asks for. It
 * comes on a descriptor, for it may be longer than a command line, and others could read that. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/own.h"
#include "wire/message.h"

struct commission {
    bool is_given;         /* else somebody has typed the verb himself */
    struct msg_deed order; /* points into text */
    struct buf text;
};

int commission_read(struct commission *c, struct pale_err *e) MUST_CHECK;
void commission_done(struct commission *c);
#define own_commission CLEANUP(commission_done) struct commission

/* For whom, as audit records have it. */
const char *commission_caller(const struct commission *c);

/* Whose box it is to be; "": the user's own. */
const char *commission_tenant(const struct commission *c);
