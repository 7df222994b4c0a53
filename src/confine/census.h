/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a box's processes, added up from what /proc shows to everybody: no right over the processes is needed, so a
 * locked-up keeper can look. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/* More than that many at once are not looked at; a box without a limit on processes may have them. */
#define CENSUS_PROCESSES_MAX 4096

struct census {
    pid_t pids[CENSUS_PROCESSES_MAX];
};

/* Bytes of top and of all that descends from it, whichever thread forked it: private pages, pages of shared memory (MAP_SHARED,
 * memfd, System V, files of a tmpfs) that a process has mapped and touched, and private pages in swap. A page that several
 * processes have counts in each, because only somebody with a right over them could tell. Not seen: shared memory that nobody has
 * mapped. What ends meanwhile counts nothing. */
uint64_t census_memory(struct census *c, pid_t top);
