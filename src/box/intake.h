/* SPDX-License-Identifier: Apache-2.0 */
/* Policies as they come in: from files, read by pale-policy, and key by key, as flags give them. Host paths are made real here. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "policy/policy.h"

/* Runs pale-policy on a file, or with "-" on in_fd: canonical text in out, or its complaints in complaints and PALE_BAD_INPUT. */
int intake_file(const char *file, int in_fd, bool json_errors, struct buf *out, struct buf *complaints, struct pale_err *e) MUST_CHECK;

/* What it printed as a policy, with the rules of the presets that it names. */
int intake_parse(struct buf *text, struct policy *ret, struct pale_err *e) MUST_CHECK;

/* Both; what it complains about is the error. */
int intake_policy(const char *file, int in_fd, struct policy *ret, struct pale_err *e) MUST_CHECK;

/* policy_set, with host paths resolved, "env" for env.set or env.pass, whichever the value means, network.allow, network.ask and
 * network.deny for rules that are to have this verdict, and presets applied. Whatever opens something makes a network of none a filtered
 * one, so that the mode, where somebody says it, is to be set last. */
int intake_set(struct policy *p, const char *key, const char *value, struct pale_err *e) MUST_CHECK;

/* The last step: project is what an unset project folder is set to, or NULL. Afterwards the policy can be held. */
int intake_check(struct policy *p, const char *project, struct pale_err *e) MUST_CHECK;
