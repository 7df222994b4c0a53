/* SPDX-License-Identifier: Apache-2.0 */
/* Init's end of the wire: one static buffer in, one out. Nothing here allocates; what does not fit is not taken. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"
#include "base/record.h"
#include "wire/frame.h"

/* Output data may fill the buffer only up to here; the rest is kept for the few small messages every job is owed. */
#define LINK_OUT_CAP (256u * 1024)
#define LINK_CONTROL_ROOM (96u * 1024)

struct link {
    int fd;
    size_t in_start, in_len, out_len;
    uint8_t in[FRAME_HEAD + FRAME_PAYLOAD_MAX];
    uint8_t out[LINK_OUT_CAP];
};

/* Reads what is there. False when the keeper is gone or broken: pid 1 then ends, and the box with it. */
bool link_fill(struct link *l);

/* The next whole frame, valid until link_fill: 1, 0 (none yet), -1 (not our protocol). */
int link_next(struct link *l, struct frame *ret);

/* Writes what is queued as far as the wire takes it. False as above. */
bool link_flush(struct link *l);

/* How many bytes of command output may be queued now. */
size_t link_data_room(const struct link *l);

/* Where the payload of a data frame of up to link_data_room() bytes can be written, and the call that queues it. */
uint8_t *link_data_at(struct link *l);
void link_data_done(struct link *l, uint8_t type, uint16_t chan, size_t n);

/* Small messages; these always fit. */
void link_send(struct link *l, uint8_t type, uint16_t chan, const void *p, size_t n);
void link_send_u64(struct link *l, uint8_t type, uint16_t chan, uint64_t v);
