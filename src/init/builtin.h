/* SPDX-License-Identifier: Apache-2.0 */
/* File requests: small functions of pale-init that run in place of a program, as the command's user, behind the command's own
 * confinement, with bytes over its standard descriptors. So a path of the box is resolved in the box, by nobody who could do
 * more than the box can. */
#pragma once

#include "wire/message.h"

/* Runs the builtin that argv[0] names and returns its exit status. Errors are one line on standard error. */
int builtin_run(const struct msg_exec *m);
