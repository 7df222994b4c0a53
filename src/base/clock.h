/* SPDX-License-Identifier: Apache-2.0 */
/* Time: monotonic for durations, wall clock for what people read. */
#pragma once

#include <stddef.h>
#include <stdint.h>

int64_t clock_ms(void); /* monotonic */
int64_t clock_us(void); /* monotonic */

/* The wall clock, in milliseconds since 1970; never negative. */
uint64_t clock_unix_ms(void);

/* "2026-01-31T12:00:00.123456Z", the form of every time stamp we write. Returns ret. */
const char *clock_stamp(char *ret, size_t cap);
