/* SPDX-License-Identifier: Apache-2.0 */
/* The text of /etc/subuid and /etc/subgid, and where in them there is room for one more range. Nothing here touches files. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SUBID_COUNT 65536u

/* Does the text give this user, by name or number, a range of at least SUBID_COUNT? */
bool subid_has(const char *text, const char *name, uint32_t uid);

/* The start of a run of SUBID_COUNT ids that no range of these texts touches and that is no user's own id in the text of
 * /etc/passwd. False if there is none, or if a line cannot be read: then nobody knows what is free. */
bool subid_free(const char *const *texts, size_t count, const char *passwd, uint32_t *ret_start);
