/* SPDX-License-Identifier: Apache-2.0 */
/* Room: is any left where the box writes? */
#pragma once

#include <stdint.h>

/* Flags of enum exit_flag that say what there is none of; 0 if there is some of all. Two calls to the kernel, so only asked about a command
 * that failed. What a command removed before it ended does not count: it is not known that it was ever there. */
uint64_t room_missing(void);
