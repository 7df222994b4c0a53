/* SPDX-License-Identifier: Apache-2.0 */
/* What the daemon tells its operator: a line with the time for each thing that happens to a box, and for trouble. */
#pragma once

#include "base/err.h"
#include "fleet/events.h"

/* On standard error, which may be the log file at path: then it is put aside when it has grown, once. */
void log_init(const char *path);
void log_line(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* Boxes' happenings from now on; those of commands are in their audit logs. */
void log_events(struct events *e);
