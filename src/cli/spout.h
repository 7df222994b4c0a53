/* SPDX-License-Identifier: Apache-2.0 */
/* A spout: bytes from a file or out of a program, for a box to read, digested on their way.
 *
 * A child reads and writes them, so that whoever carries them into a box has a plain descriptor to poll. The bytes are opaque here. */
#pragma once

#include <signal.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/own.h"
#include "base/sha256.h"

struct spout {
    int fd; /* to read from */
    int report_fd;
    pid_t feeder, program;
    const char *name;                  /* of the program */
    const volatile sig_atomic_t *stop; /* set once somebody interrupts: then nobody waits for its end. May be NULL */
};

/* The rest of an open file, whose descriptor stays the caller's. */
int spout_file(struct spout *s, int file_fd, struct pale_err *e) MUST_CHECK;

/* What a program found along PATH writes to its standard output; its standard error is ours, its input is empty. It ends when nobody
 * reads. env: NULL-ended names and values for it beyond our own, or NULL. */
int spout_program(struct spout *s, char *const argv[], const char *const *env, struct pale_err *e) MUST_CHECK;

/* All was read: the digest of it and how much it was. An error if the program failed, or not everything could be read; PALE_GONE if
 * somebody interrupts the waiting for it. */
int spout_end(struct spout *s, char ret_hex[SHA256_HEX], uint64_t *ret_bytes, struct pale_err *e) MUST_CHECK;

/* Ends whatever is left of it. */
void spout_close(struct spout *s);
#define own_spout CLEANUP(spout_close) struct spout
#define SPOUT_NONE                                                                                                                         \
    {                                                                                                                                      \
        .fd = -1, .report_fd = -1, .feeder = -1, .program = -1                                                                             \
    }
