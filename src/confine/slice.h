/* SPDX-License-Identifier: Apache-2.0 */
/* Short turns on the processor, for our processes that hand things on: they run for microseconds at a time, and a command behind
 * them waits for each. Since Linux 6.12 a process that asks for short slices is let in front of one in the middle of a long slice;
 * it gets no more time by it. Elsewhere this changes nothing, and a failure is not worth telling. */
#pragma once

#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SLICE_NS 100000 /* the shortest there is */

/* Not for children: what a box runs has slices like everybody's. */
static inline void slice_shorten(void)
{
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
    } attr = {.size = sizeof(attr), .flags = 1 /* SCHED_FLAG_RESET_ON_FORK */, .nice = getpriority(PRIO_PROCESS, 0), .runtime = SLICE_NS};
    /* Somebody who runs us in another class than the usual wants it so. */
    if (syscall(SYS_sched_getscheduler, 0) == 0)
        syscall(SYS_sched_setattr, 0, &attr, 0);
}
