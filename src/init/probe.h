/* SPDX-License-Identifier: Apache-2.0 */
/* The probe: a process of the box, confined as a command is, tries what the box must refuse.
 *
 * How it works: the prober is a spare, and the first of a box is the very process that becomes its first command. It reports one
 * number per attempt; the keeper compares (box/receipt.h). Nothing foreign has run in the box when it is probed at its start, so
 * its answers are as good as our own code; later, hostile neighbours share its fate but cannot look into it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "confine/landlock.h"
#include "policy/policy.h"
#include "wire/message.h"

enum probe_id {
#define PROBE(id, name, when, answer, right, defence) PROBE_##id,
#include "init/probe.def"
#undef PROBE
    PROBE_COUNT,
};

/* An attempt that this probe does not make. */
#define PROBE_NOT_TRIED UINT32_MAX

/* What is touched to see that the box's group counts it. */
#define PROBE_NOBODY_PORT 9 /* of 192.0.2.1, which is nobody's */
#define PROBE_NOBODY                                                                                                                       \
    {                                                                                                                                      \
        192, 0, 2, 1                                                                                                                       \
    }
#define PROBE_NOBODY_TEXT "192.0.2.1"
#define PROBE_TOUCH_BYTES (2u << 20)

struct probe_report {
    uint32_t took_us;
    uint32_t answer[PROBE_COUNT];
};

/* Before the process is confined, while it may still make a child whatever its limit: begins the attempt that needs one. */
void probe_early(struct landlock_count *c, struct probe_report *r);

/* The rest, once it is confined. first_foreign: descriptors from this one on should not be there. */
void probe_run(const struct msg_probe *m, enum policy_seccomp profile, int first_foreign, struct landlock_count *c, struct probe_report *r);

/* The sweeps of the full probe (init/sweep.c): how many calls, or sockets, did something else than the filter says. */
uint32_t sweep_calls(enum policy_seccomp profile);
uint32_t sweep_sockets(enum policy_seccomp profile);
