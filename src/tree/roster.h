/* SPDX-License-Identifier: Apache-2.0 */
/* The names in a folder, or in several folders that lie over one another: sorted by bytes, each once.
 *
 * Sorting needs them all in memory, and who fills the folder is hostile, so the bytes of all listings of a walk come out of one budget. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/own.h"

struct roster {
    char *bytes;
    size_t len, cap;
    uint32_t *at; /* where each name begins */
    size_t count, room;
    size_t cost; /* what it has taken of the budget, to be given back when it is done with */
};

void roster_done(struct roster *l);
#define own_roster CLEANUP(roster_done) struct roster

/* Adds what a folder, open for reading, holds; "." and ".." are left out. budget: the bytes that may still be used, which is lessened.
 * PALE_LIMIT beyond it. */
int roster_add_folder(struct roster *l, int fd, size_t *budget, struct pale_err *e) MUST_CHECK;
int roster_add(struct roster *l, const char *name, size_t *budget, struct pale_err *e) MUST_CHECK;

/* Sorts by bytes and drops what is there twice. After it the names are read by number. */
void roster_sort(struct roster *l);
const char *roster_name(const struct roster *l, size_t i);
