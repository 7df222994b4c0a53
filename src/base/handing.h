/* SPDX-License-Identifier: Apache-2.0 */
/* A descriptor that goes along with bytes on a local socket. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

/* As send does, with fd unless it is -1. Never raises a signal. */
ssize_t handing_send(int socket, const void *p, size_t n, int fd, int flags);

/* As recv does. *ret_fd: what came along, which is the caller's from now on, or -1. */
ssize_t handing_receive(int socket, void *p, size_t n, int *ret_fd, int flags);
