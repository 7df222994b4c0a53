/* SPDX-License-Identifier: Apache-2.0 */
/* The flags that make a policy, the same for every verb that makes a box, and policy files. */
#pragma once

#include "cli/cli.h"
#include "policy/policy.h"
#include "wire/message.h"

extern const struct option box_options[];

/* Defaults, then --policy FILE, then the flags. The result is checked. default_project is what an unset project is set to. */
int boxflags_policy(const struct args *a, struct policy *ret, struct pale_err *e) MUST_CHECK;

/* Sets what the flags say, one after another, and checks nothing of the whole. */
int boxflags_set(const struct args *a, struct policy *p, struct pale_err *e) MUST_CHECK;

/* The mode of the network is set after what implies one: what somebody says is what counts. */
bool boxflags_is_last(const struct option *o);

/* The host's network is asked for twice. */
int boxflags_check_host(const struct args *a, enum policy_network network, struct pale_err *e) MUST_CHECK;

/* The policy of --policy FILE alone, or the defaults; what is wrong with the file is told. */
int boxflags_file(const struct args *a, struct policy *ret, struct pale_err *e) MUST_CHECK;

/* Adds the host's variables that the policy lets pass to a request; variables already there stay. What is held back because it looks like a
 * secret is told on standard error and named in the request. */
void boxflags_pass_env(const struct policy *p, struct msg_exec *m);

/* What the flag that was given as number i sets its key to. */
const char *boxflags_value(const struct args *a, int i);

/* Was anything said of a policy? */
bool boxflags_given(const struct args *a);
