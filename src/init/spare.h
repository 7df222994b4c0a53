/* SPDX-License-Identifier: Apache-2.0 */
/* Spares: commands' processes that are made ahead of time, confined already, and wait for a request. The prober is one of them. */
#pragma once

#include "init/job.h"

/* Hands the request to the oldest spare, if there is one and it fits. The spare parses all of it. */
bool spare_use(struct jobs *js, uint16_t chan, const struct msg_exec *m, const struct frame *f);

/* Makes a spare that is due, sends one away that is too many. Returns when to come again in us, -1 for never. */
int64_t spare_tend(struct jobs *js, int64_t now);

/* A spare that was killed before it began with its request, which any command of the box can do: another process gets the request. False if
 * it had begun. Afterwards the slot is a spare's again, without a channel. */
bool spare_rescue(struct jobs *js, struct job *j);

void spare_forget(struct jobs *js, int slot);

/* Ends the only spare of a box whose only request it cannot take, before the request gets a process of its own. */
void spare_discard(struct jobs *js);

/* A command has ended: the next spare is due soon. */
void spare_after_end(struct jobs *js);

/* TO_PROBE: makes a spare that probes before it waits. False if the message makes no sense. */
bool spare_probe(struct jobs *js, const struct frame *f);

/* The prober's report has come, or will never: it goes to the keeper. */
void spare_probed(struct jobs *js);
