/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the watching of a box's memory from outside. */
#include "keeper/watchdog.h"

#include <unistd.h>

#include "base/clock.h"
#include "confine/census.h"

#define LOOK_EVERY_MS 200

static struct loop_timer timer;
static struct keeper *keeper;
static struct census census;

static void look(struct loop_timer *t)
{
    struct keeper *k = keeper;
    uint64_t most = k->policy.limits[LIMIT_MEMORY].value;
    if (k->died || k->stopping)
        return;
    if (census_memory(&census, k->wall.pid) > most)
        for (struct kjob *j = k->jobs; j; j = j->next)
            if (j->state == JOB_RUNNING) {
                j->out_of_memory = true;
                work_kill(j);
            }
    if (k->running > 0)
        loop_arm(&k->loop, t, clock_ms() + LOOK_EVERY_MS);
    else
        k->watchdog_looks = false; /* an idle box wakes nobody */
}

void watchdog_start(struct keeper *k)
{
    keeper = k;
    timer.fire = look;
    /* Without the kernel's lists of children it would see init alone. */
    k->watchdog_on = access("/proc/thread-self/children", R_OK) == 0;
}

void watchdog_wake(struct keeper *k)
{
    if (!k->watchdog_on || k->watchdog_looks)
        return;
    k->watchdog_looks = true;
    loop_arm(&k->loop, &timer, clock_ms() + LOOK_EVERY_MS);
}
