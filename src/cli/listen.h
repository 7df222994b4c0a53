/* SPDX-License-Identifier: Apache-2.0 */
/* What a program of the host says on its standard output, whole. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/* Runs a program found along PATH to its end; nobody hears its standard error. An error if it fails, or says more than out can hold. */
int listen_to(char *const argv[], struct buf *out, struct pale_err *e) MUST_CHECK;
