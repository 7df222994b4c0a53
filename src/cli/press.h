/* SPDX-License-Identifier: Apache-2.0 */
/* A press: what is written to it comes out smaller, by the host's zstd. Its bytes are opaque here. */
#pragma once

#include <sys/types.h>

#include "base/err.h"
#include "base/own.h"

struct press {
    int fd; /* to write to */
    pid_t pid;
};
#define PRESS_NONE                                                                                                                         \
    {                                                                                                                                      \
        .fd = -1, .pid = -1                                                                                                                \
    }

/* Is there one? PALE_UNSUPPORTED says what to do if not. */
int press_find(const char **ret_path, struct pale_err *e) MUST_CHECK;

/* Starts it; out_fd stays the caller's. */
int press_open(struct press *p, int out_fd, struct pale_err *e) MUST_CHECK;

/* Nothing more comes: all of it has gone out when this returns. */
int press_end(struct press *p, struct pale_err *e) MUST_CHECK;

/* Ends whatever is left of it. */
void press_close(struct press *p);
#define own_press CLEANUP(press_close) struct press
