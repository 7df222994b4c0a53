/* SPDX-License-Identifier: Apache-2.0 */
/* The /etc of a box: generated files, and a short list of harmless files of the host.
 *
 * How it works: the part that is the same for all boxes of a user is made once and kept in the user's runtime folder, under a
 * name that is the digest of what it was made from (times and sizes of the host's files, the user's ids); a box shows it with
 * one read-only mount. When the host's files change, the name changes and a new one is made; the old is
 * cleared away once no box shows it. What differs from box to box (names, machine id) is laid over it file by file. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "confine/ids.h"
#include "tier/wall.h"

/* The path of the shared part, made if it is not there yet. *ret_lock keeps it from being cleared away: it must stay open while
 * the box lives. policy: whatever of the host's /etc it shows gets a place to be mounted at, in a part of its own. */
int etc_prepare(const char *runtime_dir, const struct ids *ids, const struct policy *policy, char *ret, size_t cap, int *ret_lock,
                struct pale_err *e) MUST_CHECK;

/* Fills the empty etc folder of an image: users root, the box's and nobody, and with_host the same harmless files of the host as above. */
int etc_fill_image(int etc_fd, bool with_host, struct pale_err *e) MUST_CHECK;

/* The files of one box, as text: name below /etc and content. */
#define ETC_OWN_FILES 3
extern const char *const etc_own_names[ETC_OWN_FILES + 1];
/* How many of them this box has: on the host's network it asks the host's name servers. */
size_t etc_own_files(const struct wall_plan *plan);
void etc_own_text(const struct wall_plan *plan, size_t which, char *ret, size_t cap);
