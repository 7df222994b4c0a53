/* SPDX-License-Identifier: Apache-2.0 */
/* "Did you mean …": the nearest of a list of names. */
#pragma once

#include <stddef.h>

/* Edits (insert, delete, replace, swap of neighbours) that turn a into b; both cut at 64 bytes. */
size_t nearest_distance(const char *a, const char *b);

/* Keeps the best of the names offered one by one. best stays NULL while none is close enough to be worth saying. */
struct nearest {
    const char *word, *best;
    size_t distance;
};
void nearest_init(struct nearest *n, const char *word);
void nearest_offer(struct nearest *n, const char *name);
