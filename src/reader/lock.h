/* SPDX-License-Identifier: Apache-2.0 */
/* How pale-policy locks itself up before it reads a byte of the file. */
#pragma once

#include "base/err.h"

/* Needs: every file open already. Gives up: new privileges, new descriptors, new processes, core dumps, all but a little
 * memory and CPU time, and every system call that reading and printing does not need. Verifies that no descriptor can be had
 * any more. */
int lock_self(struct pale_err *e) MUST_CHECK;
