/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the CPU time of jobs as the box's control group counts it.
 *
 * How it works: init adds up what it finds in /proc and what runners have waited for, but a process that disowns its children
 * (SIGCHLD ignored) hides their time from both. The group misses nothing, though it cannot tell one command from another. So a
 * command has passed its limit when the box, since the command began, has used more than the limits of all commands that ran
 * meanwhile: exact for one command at a time, and for n at once never more than n limits together. */
#include <stddef.h>

#include "base/clock.h"
#include "keeper/keeper.h"

#define LOOK_MIN_MS 20
#define LOOK_MAX_MS 1000

static uint64_t limit_us(const struct keeper *k)
{
    return k->policy.limits[LIMIT_CPU_TIME].value * 1000;
}

/* When so much could be used up at the earliest. */
static int64_t look_after_ms(const struct keeper *k, uint64_t left_us)
{
    int64_t ms = (int64_t)(left_us / 1000 / k->cpus);
    return ms < LOOK_MIN_MS ? LOOK_MIN_MS : ms > LOOK_MAX_MS ? LOOK_MAX_MS : ms;
}

static void look(struct loop_timer *t)
{
    struct keeper *k = (struct keeper *)((char *)t - offsetof(struct keeper, cpu_timer));
    uint64_t now = cgroup_cpu_us(&k->cgroup);
    int64_t next = -1;
    for (int i = 0; i < JOBS_MAX; i++) {
        struct kjob *j = k->by_chan[i];
        if (!j || j->killed)
            continue;
        uint64_t used = now - j->cpu_before_us, most = limit_us(k) * j->cpu_sharers;
        if (used > most) {
            j->out_of_cpu = true;
            work_kill(j);
            continue;
        }
        int64_t after = look_after_ms(k, most - used);
        next = next < 0 || after < next ? after : next;
    }
    if (next >= 0)
        loop_arm(&k->loop, &k->cpu_timer, clock_ms() + next);
}

void cputime_started(struct kjob *j)
{
    struct keeper *k = j->k;
    if (k->cgroup.cpu_fd < 0)
        return;
    j->cpu_before_us = cgroup_cpu_us(&k->cgroup);
    j->cpu_sharers = k->running;
    for (int i = 0; i < JOBS_MAX; i++)
        if (k->by_chan[i] && k->by_chan[i] != j)
            k->by_chan[i]->cpu_sharers++;
    if (!k->cpu_timer.armed) {
        k->cpu_timer.fire = look;
        loop_arm(&k->loop, &k->cpu_timer, clock_ms() + look_after_ms(k, limit_us(k)));
    }
}
