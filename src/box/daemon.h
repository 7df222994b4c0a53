/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's place: its socket, lock and log, and how it is found and started. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/limits.h"

#define DAEMON_PORT 8839

struct daemon_paths {
    char socket[108];
    char lock[PATH_BYTES_MAX];  /* holds the steward's pid, and is locked while it lives */
    char deeds[PATH_BYTES_MAX]; /* a lock that is held while a deed runs */
    char log[PATH_BYTES_MAX];
    char registry[PATH_BYTES_MAX]; /* the database */
};

/* The folders are made where missing and checked: the user's own, and nobody else's. */
int daemon_paths(struct daemon_paths *ret, struct pale_err *e) MUST_CHECK;

/* A connection to the daemon's socket. It is started if there is none and start is set, else PALE_NOT_FOUND. The socket must belong to
 * the user. port: for a daemon that is started; 0: none. */
int daemon_connect(const struct daemon_paths *p, bool start, unsigned port, int *ret_fd, struct pale_err *e) MUST_CHECK;

/* The pid of the living steward, 0 if there is none. */
int daemon_pid(const struct daemon_paths *p, pid_t *ret, struct pale_err *e) MUST_CHECK;

/* Ends it and waits. Boxes go on. */
int daemon_stop(const struct daemon_paths *p, struct pale_err *e) MUST_CHECK;
