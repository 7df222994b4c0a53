/* SPDX-License-Identifier: Apache-2.0 */
/* The network of a box that has one: a namespace with nothing in it but lo, where every address is local, and where whatever is sent
 * beyond the box's own loopback ends at sockets that somebody outside holds.
 *
 * How it works: `local default dev lo` makes each address of both families one of this namespace. A nat chain on the way out leads every
 * TCP connection and every question to a name server to a socket here; the one thing that gets through of anything else is the news
 * that it was refused. 127.0.0.0/8 and ::1 stay the box's own. There is no other interface and none can be made, so that whoever takes
 * all the rules away is left with nothing. */
#pragma once

#include <stdint.h>

#include "base/err.h"

#define DETOUR_PORT 1       /* connections, on the loopback of the box */
#define DETOUR_NAME_PORT 53 /* questions */

enum detour_socket {
    DETOUR_TCP4,   /* connections */
    DETOUR_TCP6,   /* … -1 where the kernel has no IPv6, and so the box none */
    DETOUR_NAMES4, /* questions, as datagrams */
    DETOUR_NAMES6,
    DETOUR_STREAM4, /* questions, over connections */
    DETOUR_STREAM6,
    DETOUR_REFUSED, /* the kernel tells of what was refused (nfnetlink_log); -1 where it cannot */
    DETOUR_SOCKETS,
};

/* Sockets of the namespace by which somebody outside dials in, one connection each at a time. */
#define DETOUR_INWARD 64

/* Lays it in the network namespace of the caller, who may administer it; lo is up. On failure no socket is left open. */
int detour_make(int ret[DETOUR_SOCKETS], struct pale_err *e) MUST_CHECK;
void detour_close(int sockets[DETOUR_SOCKETS]);

/* Sends the sockets to whoever holds the other end of a local socket, and takes them there. */
int detour_hand_over(int to_fd, const int sockets[DETOUR_SOCKETS], struct pale_err *e) MUST_CHECK;
int detour_receive(int from_fd, int ret[DETOUR_SOCKETS], struct pale_err *e) MUST_CHECK;

/* Makes so many sockets to dial in with and sends them after the others: 0 or DETOUR_INWARD. */
int detour_hand_over_inward(int to_fd, uint8_t count, struct pale_err *e) MUST_CHECK;
int detour_receive_inward(int from_fd, int ret[DETOUR_INWARD], uint32_t *ret_count, struct pale_err *e) MUST_CHECK;
