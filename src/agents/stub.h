/* SPDX-License-Identifier: Apache-2.0 */
/* A model that says "ok": a listener on loopback that answers a harness's requests and tells which tools they offered.
 *
 * How it works: a process of its own, because whoever is on this host may connect. What does not come with the secret in its path
 * is answered 404 and not looked at. Bounded in connections, bytes and time. It writes a line for each tool (its name), a line of a
 * single dot for each request that was understood, and "!" for one that was not, to a pipe. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

#define STUB_LIFE_MS 60000

struct stub {
    pid_t pid;
    int out_fd; /* what it tells */
    uint16_t port;
    char secret[33];
};

/* first: items of the Responses API that the first request there is answered with; NULL or empty: it says "ok". Kept until the end. */
int stub_start(struct stub *s, const char *first, struct pale_err *e) MUST_CHECK;
void stub_end(struct stub *s);
