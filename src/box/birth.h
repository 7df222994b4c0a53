/* SPDX-License-Identifier: Apache-2.0 */
/* The record that a box's log has before there is a box: that it was made, and the digest of its policy. */
#pragma once

#include <stdbool.h>

#include "box/place.h"

/* durable: the record is on the disk when this returns; else it is under way there. */
int birth_record(const struct place *p, const char *policy, size_t n, bool durable, struct pale_err *e) MUST_CHECK;
