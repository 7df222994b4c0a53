/* SPDX-License-Identifier: Apache-2.0 */
/* Deeds on what was taken out of a box's live project: listed, given back to where it was, forgotten. */
#pragma once

#include "base/err.h"
#include "box/place.h"
#include "wire/message.h"

int custody_list(const struct place *p, int fd, struct pale_err *e) MUST_CHECK;
int custody_release(const struct msg_deed *m, const struct place *p, struct pale_err *e) MUST_CHECK;
int custody_drop(const struct msg_deed *m, const struct place *p, struct pale_err *e) MUST_CHECK;
