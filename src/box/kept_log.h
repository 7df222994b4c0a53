/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the audit logs of removed boxes, so that removing a box is no way to lose what it did.
 *
 * How it works: beside the boxes in the state folder there is a folder `removed`, in it one for each box that was removed, named
 * ID-MILLISECONDS-NAME. It gets the log and what belongs to it as hard links before the box goes, so that a kill in between loses nothing.
 * They are dropped when they are old, and beyond a number and a sum of bytes the oldest go. */
#pragma once

#include <stdint.h>

#include "box/place.h"

#define KEPT_LOG_DAYS 30
#define KEPT_LOG_MOST 1000
#define KEPT_LOG_BYTES_MAX (UINT64_C(256) << 20)

/* To be called when nothing runs in the box and it is about to be removed. caller: who removes it; forced: although it has work that has
 * not landed. The log gets a last record that says so. ret: the folder, for kept_log_undo. 1: there is no room for it, or it cannot be read
 * any more; e says which, and the box may go all the same. */
int kept_log_save(const struct place *p, const char *caller, bool forced, char ret[PATH_BYTES_MAX], struct pale_err *e) MUST_CHECK;

/* The box was not removed after all. */
void kept_log_undo(const char *folder);

/* The newest log of a box with this id, in a place whose state folder is the log's: "data" and "socket" mean nothing. PALE_NOT_FOUND. */
int kept_log_find(const char *id, struct place *ret, struct pale_err *e) MUST_CHECK;

/* Calls fn for each, the newest first. */
struct kept_log {
    char id[BOX_ID_LEN + 1], name[BOX_NAME_MAX + 1];
    uint64_t removed_unix_ms;
};
int kept_log_each(void (*fn)(void *arg, const struct kept_log *k), void *arg, struct pale_err *e) MUST_CHECK;

/* Drops what is too old, too many or too much. *ret: how many; with only_counts they stay. */
int kept_log_prune(bool only_counts, unsigned *ret, struct pale_err *e) MUST_CHECK;

/* Removes a stopped box (place_remove, gc_shared), its log kept. *ret_note: "" or why the log could not be kept. */
int kept_log_remove(const struct place *p, bool data, const char *caller, bool forced, char ret_note[PALE_ERR_TEXT_MAX],
                    struct pale_err *e) MUST_CHECK;
