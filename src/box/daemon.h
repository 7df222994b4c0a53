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
    char lock[PATH_BYTES_MAX];  /* of the runtime folder: the steward's pid and the state folder that it serves; locked while it lives */
    char claim[PATH_BYTES_MAX]; /* of the state folder: the steward's pid and its socket; the same */
    char state[PATH_BYTES_MAX]; /* the state folder */
    char deeds[PATH_BYTES_MAX]; /* a lock that is held while a deed runs */
    char log[PATH_BYTES_MAX];
    char registry[PATH_BYTES_MAX]; /* the database */
};

/* The folders are made where missing and checked: the user's own, and nobody else's. */
int daemon_paths(struct daemon_paths *ret, struct pale_err *e) MUST_CHECK;

/* The state folder as the client and the daemon of one host compare it: as "DEVICE:NUMBER". */
#define DAEMON_STATE_MAX 48
int daemon_state(const char *dir, char ret[DAEMON_STATE_MAX], struct pale_err *e) MUST_CHECK;

/* Takes the locks of both folders for a daemon that is about to serve, until the descriptors are closed. */
int daemon_lock(const struct daemon_paths *p, int *ret_lock, int *ret_claim, struct pale_err *e) MUST_CHECK;

/* A connection to the socket of the daemon of this state folder, wherever it listens; PALE_CONFLICT if the runtime folder has the daemon of
 * another. It is started if there is none and start is set, else PALE_NOT_FOUND. The socket must belong to
 * the user. port: for a daemon that is started; 0: none. */
int daemon_connect(const struct daemon_paths *p, bool start, unsigned port, int *ret_fd, struct pale_err *e) MUST_CHECK;

/* The pid of the living steward of this state folder, 0 if there is none. */
int daemon_pid(const struct daemon_paths *p, pid_t *ret, struct pale_err *e) MUST_CHECK;

/* Ends it and waits. Boxes go on. PALE_CONFLICT if there is none, but the runtime folder has the daemon of another state folder. */
int daemon_stop(const struct daemon_paths *p, struct pale_err *e) MUST_CHECK;
