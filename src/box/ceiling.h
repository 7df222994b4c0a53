/* SPDX-License-Identifier: Apache-2.0 */
/* The ceiling: what every tenant's boxes must lie within. */
#pragma once

#include "base/err.h"
#include "policy/policy.h"

/* The operator's tenant.yaml, or if there is none the defaults, which show nothing of the host. */
int ceiling_read(struct policy *ret, struct pale_err *e) MUST_CHECK;

/* Is this within it? tenant: whose box it is to be; "": nobody's, who has no ceiling. */
int ceiling_check(const char *tenant, const struct policy *p, struct pale_err *e) MUST_CHECK;

/* Whoever gives a box the host's network says so twice, on the host itself; what comes to the daemon is a request like any other. */
int ceiling_refuse_host(const struct policy *p, struct pale_err *e) MUST_CHECK;
