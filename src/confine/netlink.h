/* SPDX-License-Identifier: Apache-2.0 */
/* Netlink messages of our own making: written one behind the other into a fixed space, sent at once, and every answer awaited.
 *
 * Nothing here reads what a box sent: the other side is the kernel. Once something does not fit, full stays set and the batch is not
 * sent. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define NETLINK_BATCH_BYTES 8192u /* all rules of a box's detour take half of it */

struct netlink_batch {
    _Alignas(8) uint8_t byte[NETLINK_BATCH_BYTES];
    size_t len, message; /* where the message that is being written begins */
    uint32_t seq;
    unsigned answers; /* that are to come */
    bool full;
};

/* Begins a message; flags without NLM_F_REQUEST, which is always set. With NLM_F_ACK the kernel's answer is awaited. */
void netlink_begin(struct netlink_batch *b, uint16_t type, uint16_t flags);
void netlink_end(struct netlink_batch *b);
/* The fixed head of a message's body, and attributes. */
void netlink_put(struct netlink_batch *b, const void *p, size_t n);
void netlink_attr(struct netlink_batch *b, uint16_t type, const void *p, size_t n);
void netlink_attr_u32(struct netlink_batch *b, uint16_t type, uint32_t host_order);
void netlink_attr_be32(struct netlink_batch *b, uint16_t type, uint32_t host_order);
void netlink_attr_text(struct netlink_batch *b, uint16_t type, const char *text);
/* An attribute that holds others: nest gives where it began, for unnest. */
size_t netlink_nest(struct netlink_batch *b, uint16_t type);
void netlink_unnest(struct netlink_batch *b, size_t began);

/* Sends the batch on a socket of that protocol made here, and waits until all of it is done. The first thing the kernel refuses is the
 * error; what says what was tried. */
int netlink_do(const struct netlink_batch *b, int protocol, const char *what, struct pale_err *e) MUST_CHECK;
/* The same on a socket that stays open. */
int netlink_do_on(int fd, const struct netlink_batch *b, const char *what, struct pale_err *e) MUST_CHECK;
