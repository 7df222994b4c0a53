/* SPDX-License-Identifier: Apache-2.0 */
/* Deeds on a box's past: snapshots, going back, forks, gc. Each tells in JSON, as the command line does with --json, what has come of it.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "box/place.h"
#include "wire/message.h"

int past_snapshot(const struct msg_deed *m, const struct place *p, struct buf *told, struct pale_err *e) MUST_CHECK;
int past_restore(const struct msg_deed *m, const struct place *p, struct buf *told, struct pale_err *e) MUST_CHECK;
int past_forget(const struct msg_deed *m, const struct place *p, struct pale_err *e) MUST_CHECK;
int past_fork(const struct msg_deed *m, const struct place *p, struct buf *told, struct pale_err *e) MUST_CHECK;
int past_gc(const struct msg_deed *m, struct buf *told, struct pale_err *e) MUST_CHECK;
