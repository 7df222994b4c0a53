/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as people write them: whole numbers, sizes (512M), durations (30s), money. One strict reader each: no sign, no
 * blanks, no octal, nothing left over, no overflow. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool number_u64(const char *s, uint64_t max, uint64_t *ret);

/* The one reader that takes a sign, a '-' before anything but 0: times of files lie before 1970 too. */
bool number_i64(const char *s, int64_t *ret);

/* Bytes: "4096", "512K", "64M", "2G", "1T", with an optional "iB" or "B" after the letter; powers of 1024. */
bool number_size(const char *s, uint64_t *ret_bytes);

/* Milliseconds: "250ms", "30s", "5m", "2h", "1d"; a bare number is seconds and may have a fraction ("1.5"). */
bool number_duration(const char *s, uint64_t *ret_ms);

/* Thousandths: "0.5", "2", "1.25"; for CPU shares (milli-CPUs) and the like. */
bool number_milli(const char *s, uint64_t *ret_milli);

/* Millionths: dollars as "0.10". */
bool number_micro(const char *s, uint64_t *ret_micro);

/* "22.4MiB", "234ms", "1m05s": the way they are shown. Returns ret. */
const char *number_show_bytes(uint64_t bytes, char *ret, size_t cap);
const char *number_show_ms(uint64_t ms, char *ret, size_t cap);
