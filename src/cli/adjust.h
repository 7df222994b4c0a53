/* SPDX-License-Identifier: Apache-2.0 */
/* pale policy set: another policy for a box that is there. */
#pragma once

#include "cli/cli.h"

int adjust_policy(struct args *a);
