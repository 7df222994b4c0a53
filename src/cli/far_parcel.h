/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs export and import where a daemon elsewhere does them: the archive comes from there, or goes there. */
#pragma once

#include "cli/cli.h"

/* file: where the archive goes. */
int far_export(struct args *a, const char *file);
int far_import(struct args *a);
