/* SPDX-License-Identifier: Apache-2.0 */
/* A line of progress on standard error, for work that takes longer than a second. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct progress {
    bool shows;    /* standard error is a terminal, and nobody wants JSON; or somebody asked for it */
    bool by_lines; /* each is a line of its own, for a program that reads them */
    int64_t began_ms, shown_ms;
};

/* arg: a struct progress. Shown from time to time. */
void progress_show(void *arg, uint64_t entries, uint64_t bytes);

/* The same where only bytes are counted. */
void progress_bytes(void *arg, uint64_t bytes);

/* Takes the line away. */
void progress_end(const struct progress *p);
