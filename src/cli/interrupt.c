/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the telling of interruptions. */
#include "cli/interrupt.h"

#include <stddef.h>
#include <sys/mman.h>

static volatile sig_atomic_t own, *seen;

const volatile sig_atomic_t *interrupt_seen(void)
{
    if (!seen) {
        void *shared = mmap(NULL, sizeof(own), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        seen = shared == MAP_FAILED ? &own : shared;
    }
    return seen;
}

static void on_signal(int sig)
{
    (void)sig;
    *seen = 1;
}

void interrupt_catch(void)
{
    static const int caught[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction sa = {.sa_handler = on_signal};
    (void)interrupt_seen();
    for (size_t i = 0; i < sizeof(caught) / sizeof(caught[0]); i++)
        sigaction(caught[i], &sa, NULL);
    signal(SIGPIPE, SIG_IGN);
}
