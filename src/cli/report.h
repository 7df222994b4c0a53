/* SPDX-License-Identifier: Apache-2.0 */
/* How a command's result is told. */
#pragma once

#include "base/buf.h"
#include "base/json.h"
#include "wire/message.h"

/* "exit=0 time=234ms cpu=0.18s peak=22.4MiB" on standard error, after what went wrong if something did; quiet leaves the line
 * out. */
void report_line(const struct msg_result *r, bool quiet);

/* One object with both streams. Returns the command's status. */
int report_json(const struct msg_result *r, const struct msg_exec *asked, struct buf *out, struct buf *err);
