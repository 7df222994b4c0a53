/* SPDX-License-Identifier: Apache-2.0 */
/* Deeds on what a box has changed: told, landed in the user's tree, thrown away. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "box/place.h"
#include "wire/message.h"

/* Writes the difference to paled as it is found, in parts. It ends when nobody takes them. */
int scrutiny_diff(const struct msg_deed *m, const struct place *p, int fd, struct pale_err *e) MUST_CHECK;

/* Lands it, and then tells in parts what became of each file, in JSON; told gets the numbers. Whether anybody listens changes nothing of
 * what lands. */
int scrutiny_apply(const struct msg_deed *m, const struct place *p, int fd, struct buf *told, struct pale_err *e) MUST_CHECK;

int scrutiny_discard(const struct msg_deed *m, const struct place *p, struct buf *told, struct pale_err *e) MUST_CHECK;
