/* SPDX-License-Identifier: Apache-2.0 */
/* What pale-steward does for paled: deeds on boxes that block, that need more rights than a process which reads the network may
 * have, or that must go on whatever becomes of the daemon. */
#pragma once

/* Reads one order from fd, does it, answers, and ends. Runs in a process of its own. home_fd: for the ids of boxes, or -1. */
void deed_serve(int fd, int home_fd);
