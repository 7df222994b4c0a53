/* SPDX-License-Identifier: Apache-2.0 */
/* Running a command in a box that was found already, with our streams, on a terminal if ours are one. */
#pragma once

#include "cli/cli.h"

extern const struct option run_in_options[];

/* The exit status, as exec's. */
int run_in(struct args *a, const char *box, const char *cwd, char **words, int count);
