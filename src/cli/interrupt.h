/* SPDX-License-Identifier: Apache-2.0 */
/* Interruption of a verb that has something to take back: it is told, and ends by itself. */
#pragma once

#include <signal.h>

/* Leads to what is set once somebody interrupts, for children too. */
const volatile sig_atomic_t *interrupt_seen(void);

/* From now on SIGINT, SIGTERM and SIGHUP are only told. A session has answers of its own to signals; before and after one they are ours, so
 * this is called again after each. Whoever reads what we write may go: that is an error of writing. */
void interrupt_catch(void);
